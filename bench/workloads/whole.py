# SPDX-License-Identifier: Apache-2.0
"""The whole harness of naive fibonacci numbers, to be run under a tracer or alone:

    whole.py UNITS

`fib(20)` is called UNITS times. stdout: JSON with how many calls that were (`made`), the `seconds`
that they took, the most memory that the process has had in KiB until then (`peak_kb`), and the
interpreter's `release`. `_traced.py` of `pystrobe bench` must be beside it.
"""

import json
import platform
import sys
import time
from pathlib import Path

from _traced import CALLS, task_fib


def main():
    units = int(sys.argv[1])
    _, calls = CALLS["fib"]
    begin = time.perf_counter()
    for _ in range(units):
        task_fib()
    seconds = time.perf_counter() - begin
    status = Path("/proc/self/status").read_text().splitlines()
    answer = {
        "made": calls * units,
        "seconds": seconds,
        "peak_kb": next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")),
        "release": platform.python_version(),
    }
    print(json.dumps(answer))


main()
