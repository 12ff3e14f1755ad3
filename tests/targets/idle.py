# SPDX-License-Identifier: Apache-2.0
"""64 idle threads (32 in sleep, 32 in queue.get) beside a busy main thread."""

import queue
import sys
import threading
import time

import control


def sleeper():  # entry
    while True:
        time.sleep(3600)


def waiter(source):  # entry
    while True:
        source.get()  # -> queue.py


def busy(n):
    total = 0
    for i in range(n):
        total += i
    return total


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    for i in range(pairs):
        threading.Thread(target=sleeper, name="sleeper-%d" % i, daemon=True).start()
        threading.Thread(
            target=waiter, args=(queue.Queue(),), name="waiter-%d" % i, daemon=True
        ).start()
    control.ready(idle=2 * pairs)  # -> ready
    while control.running:
        busy(500)  # -> busy
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
