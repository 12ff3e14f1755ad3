# SPDX-License-Identifier: Apache-2.0
"""Times the work of a script from within, without the start of whatever profiles it."""

import json
import sys
import time


def run(work):
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    figures = {"wall": time.perf_counter() - wall, "cpu": time.thread_time() - cpu}
    print(json.dumps(figures), file=sys.stderr)
