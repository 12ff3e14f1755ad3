# SPDX-License-Identifier: Apache-2.0
"""Brief work before a brief sleep and after it, each of its own length.

Truth: elapsed time of the three.
"""

import time

import control

SPENT = {"before": 0.0, "nap": 0.0, "after": 0.0}


def before():
    end = time.perf_counter() + 20e-6
    while time.perf_counter() < end:
        pass


def nap():
    time.sleep(0.0002)


def after():
    end = time.perf_counter() + 50e-6
    while time.perf_counter() < end:
        pass


def main():
    control.ready()
    begin = time.perf_counter()
    while control.running:
        for part in (before, nap, after):
            part()
            end = time.perf_counter()
            SPENT[part.__name__] += end - begin
            begin = end
        control.progress[0] += 1
    control.truth(spent=SPENT)


if __name__ == "__main__":
    main()
