# SPDX-License-Identifier: Apache-2.0
"""A worker that wakes for short jobs and sleeps in between, as a service does: most looks find it
asleep. Tells, when asked to end, what the kernel charged it in each function."""

import threading
import time

import control

CLOCK = time.thread_time_ns
TRUTH = {"long_part": 0, "short_part": 0}


def long_part():
    begin = CLOCK()
    while CLOCK() - begin < 300_000:
        sum(range(50))
    TRUTH["long_part"] += CLOCK() - begin


def short_part():
    begin = CLOCK()
    while CLOCK() - begin < 100_000:
        sum(range(50))
    TRUTH["short_part"] += CLOCK() - begin


def pause():
    time.sleep(0.0016)


def work():
    while control.running:
        long_part()  # -> long_part
        short_part()  # -> short_part
        pause()  # -> pause
        control.progress[0] += 1


def main():
    worker = threading.Thread(target=work, name="worker")
    worker.start()
    control.ready()  # -> ready
    worker.join()  # -> threading.py
    control.truth(cpu=TRUTH)


if __name__ == "__main__":
    main()  # -> main
