# SPDX-License-Identifier: Apache-2.0
"""Half of its work without the interpreter's lock, half with it, beside a thread that wants it.

Each piece is far shorter than the wait for the lock before it. Truth: CPU time of both, by their
thread's clock.
"""

import hashlib
import threading
import time

import control

DATA = bytes(200 << 10)
USED = {"digest": 0.0, "count": 0.0}


def digest():
    hashlib.sha256(DATA)


def count(n):
    total = 0
    for i in range(n):
        total += i
    return total


def halves():
    before = time.thread_time()
    while control.running:
        digest()
        between = time.thread_time()
        count(10_000)
        after = time.thread_time()
        USED["digest"] += between - before
        USED["count"] += after - between
        before = after
        control.progress[0] += 1


def main():
    worker = threading.Thread(target=halves, name="halves")
    worker.start()
    control.ready()
    while control.running:
        count(20_000)
    worker.join()
    control.truth(used=USED)


if __name__ == "__main__":
    main()
