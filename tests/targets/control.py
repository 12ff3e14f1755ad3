# SPDX-License-Identifier: Apache-2.0
"""What every target shares: the ready line, the stop flag, a progress counter and the truth.

A target runs until SIGTERM, then prints one JSON line of truth if it has one. The counter lives in
the file named by TARGET_PROGRESS, so that an observer reads it without disturbing the target.
"""

import json
import mmap
import os
import signal
import sys

running = True
progress = memoryview(bytearray(8)).cast("Q")


def _stop(signum, frame):
    global running
    running = False


def ready(**facts):
    """Tell the observer that the work begins now, and any facts it needs."""
    global progress
    path = os.environ.get("TARGET_PROGRESS")
    if path:
        with open(path, "r+b") as file:
            progress = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
    signal.signal(signal.SIGTERM, _stop)
    facts["pid"] = os.getpid()
    print(json.dumps({"ready": facts}), flush=True)


def truth(**facts):
    """Tell what really happened, at the end."""
    print(json.dumps({"truth": facts}), flush=True)
    sys.stdout.close()
