# SPDX-License-Identifier: Apache-2.0
"""Sleeps, works for 4 ms, then for 12 ms in another function; with "short" an eighth of all that.

Truth: CPU and wall seconds of each.
"""

import random
import sys
import time

import control

SCALE = 0.125 if "short" in sys.argv else 1


def spin(seconds):
    end = time.perf_counter() + SCALE * seconds
    while time.perf_counter() < end:
        pass


def first():
    spin(0.004)  # -> spin


def second():
    spin(0.012)  # -> spin


def rest():
    time.sleep(SCALE * random.uniform(0.005, 0.025))


def main():
    visits = (rest, first, second)
    cpu = {function.__name__: 0.0 for function in visits}
    wall = dict(cpu)
    control.ready()  # -> ready
    while control.running:
        for function in visits:
            cpu_begin, wall_begin = time.thread_time(), time.perf_counter()
            function()  # -> first, second, rest
            cpu[function.__name__] += time.thread_time() - cpu_begin
            wall[function.__name__] += time.perf_counter() - wall_begin
    control.truth(cpu=cpu, wall=wall)


if __name__ == "__main__":
    main()  # -> main
