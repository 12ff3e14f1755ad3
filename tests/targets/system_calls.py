# SPDX-License-Identifier: Apache-2.0
"""Brief work and a brief system call, in turn.

Truth: elapsed time of both, by a clock that needs no system call.
"""

import os
import time

import control

SPENT = {"work": 0.0, "ask": 0.0}


def work():
    return sum(range(200))


def ask():
    return os.getppid()


def main():
    control.ready()  # -> ready
    before = time.perf_counter()
    while control.running:
        work()  # -> work
        between = time.perf_counter()
        ask()  # -> ask
        after = time.perf_counter()
        SPENT["work"] += between - before
        SPENT["ask"] += after - between
        before = after
        control.progress[0] += 1
    control.truth(spent=SPENT)


if __name__ == "__main__":
    main()  # -> main
