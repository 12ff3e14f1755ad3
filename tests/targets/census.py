# SPDX-License-Identifier: Apache-2.0
"""Threads that wait, and one that computes or runs a sub-interpreter; tells all their ids.

census.py [THREADS] [sub]: `ids` in the ready line are the kernel's, main thread first, as this
program sees them; `sub` is the one that runs in the sub-interpreter.
"""

import sys
import threading

import control
import subinterpreters

SUB_SCRIPT = """
import time
while True:
    time.sleep(0.01)
"""


def wait(stop):
    stop.wait()


def compute():
    while control.running:
        sum(range(100))


def start_sub():
    create, run = subinterpreters.start()
    made = create()
    worker = threading.Thread(target=run, args=(made, SUB_SCRIPT), daemon=True)
    worker.start()
    return worker.native_id


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    stop = threading.Event()
    workers = [threading.Thread(target=wait, args=(stop,), daemon=True) for _ in range(count)]
    if len(sys.argv) <= 2:  # 3.9 lets no sub-interpreter run beside a thread that computes
        workers.append(threading.Thread(target=compute, daemon=True))
    for worker in workers:
        worker.start()
    facts = {"ids": [threading.get_native_id()] + [worker.native_id for worker in workers]}
    if len(sys.argv) > 2:
        facts["sub"] = start_sub()
    control.ready(**facts)  # -> ready
    while control.running:
        stop.wait(0.05)


if __name__ == "__main__":
    main()
