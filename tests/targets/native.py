# SPDX-License-Identifier: Apache-2.0
"""Native code that lets the interpreter's lock go, beside Python code that wants it.

Truth: CPU time of the two native functions, by their thread's clock.
"""

import hashlib
import threading
import time
import zlib

import control

DATA = bytes(range(256)) * 4096
USED = {"digest": 0.0, "shrink": 0.0}


def digest():
    return hashlib.sha256(DATA).digest()


def shrink():
    return zlib.compress(DATA, 6)


def native_work():  # entry
    before = time.thread_time()
    while control.running:
        digest()  # -> digest
        between = time.thread_time()
        shrink()  # -> shrink
        after = time.thread_time()
        USED["digest"] += between - before
        USED["shrink"] += after - between
        before = after


def python_leaf(n):
    return n * 3


def python_work():
    for n in range(200):
        python_leaf(n)  # -> python_leaf


def main():
    worker = threading.Thread(target=native_work, name="native")
    worker.start()  # -> threading.py
    control.ready()  # -> ready
    while control.running:
        python_work()  # -> python_work
        control.progress[0] += 1
    worker.join()  # -> threading.py
    control.truth(used=USED)


if __name__ == "__main__":
    main()  # -> main
