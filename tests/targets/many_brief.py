# SPDX-License-Identifier: Apache-2.0
"""A hundred threads, each of which works for a tenth of a millisecond and sleeps for twenty: who
has the lock is seldom who had it a moment ago."""

import threading
import time

import control

THREADS = 100


def work():
    return sum(range(4000))


def turns():  # entry
    while control.running:
        work()  # -> work
        time.sleep(0.02)
        control.progress[0] += 1


def main():
    threads = [threading.Thread(target=turns, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    control.ready(threads=THREADS)
    for thread in threads:
        thread.join()
    control.truth()


if __name__ == "__main__":
    main()  # -> main
