# SPDX-License-Identifier: Apache-2.0
"""Brief work and a brief sleep, in turn: it is awake again within microseconds of being asked.

Truth: elapsed time of both.
"""

import time

import control

SPENT = {"work": 0.0, "nap": 0.0}


def work():
    return sum(range(2500))


def nap():
    time.sleep(0.0001)


def main():
    control.ready()  # -> ready
    before = time.perf_counter()
    while control.running:
        work()  # -> work
        between = time.perf_counter()
        nap()  # -> nap
        after = time.perf_counter()
        SPENT["work"] += between - before
        SPENT["nap"] += after - between
        before = after
        control.progress[0] += 1
    control.truth(spent=SPENT)


if __name__ == "__main__":
    main()  # -> main
