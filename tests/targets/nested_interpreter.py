# SPDX-License-Identifier: Apache-2.0
"""One thread that works and sleeps by turns in its interpreter and in a sub-interpreter.

Truth: wall seconds of each.
"""

import time

import control
import subinterpreters

INNER = """
import time

def inner_spin():
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        pass

def inner_nap():
    time.sleep(0.1)

inner_spin()
inner_nap()
"""


def outer_spin():
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        pass


def outer_nap():
    time.sleep(0.1)


def main():
    create, run = subinterpreters.start()
    made = create()
    work = {
        "outer_spin": outer_spin,
        "inner": lambda: run(made, INNER),
        "outer_nap": outer_nap,
    }
    wall = dict.fromkeys(work, 0.0)
    control.ready()
    while control.running:
        for name, function in work.items():
            begin = time.perf_counter()
            function()
            wall[name] += time.perf_counter() - begin
        control.progress[0] += 1
    control.truth(wall=wall)


if __name__ == "__main__":
    main()
