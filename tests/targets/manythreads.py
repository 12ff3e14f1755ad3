# SPDX-License-Identifier: Apache-2.0
"""Several thousand threads that wait (first argument, default 2000) and one that works."""

import sys
import threading

import control


def wait_for_ever(event):  # entry
    event.wait()  # -> threading.py


def busy(n):
    total = 0
    for i in range(n):
        total += i
    return total


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    threading.stack_size(256 * 1024)
    event = threading.Event()
    for _ in range(count):
        threading.Thread(target=wait_for_ever, args=(event,), daemon=True).start()
    control.ready(threads=count + 1)  # -> ready
    while control.running:
        busy(500)  # -> busy
        control.progress[0] += 1
    event.set()


if __name__ == "__main__":
    main()  # -> main
