# SPDX-License-Identifier: Apache-2.0
"""Three functions that use 50, 30 and 20 % of the CPU, in slices of 50, 30 and 20 ms of it.

With "nap" every round also sleeps half as long as it worked. Truth: CPU and wall seconds of each.
"""

import sys
import time

import control


def spin(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        n += 1
    return n


def burn50():
    spin(0.050)  # -> spin


def burn30():
    spin(0.030)  # -> spin


def burn20():
    spin(0.020)  # -> spin


def nap():
    time.sleep(0.050)


def main():
    work = [burn50, burn30, burn20] + ([nap] if "nap" in sys.argv else [])
    cpu = dict.fromkeys([function.__name__ for function in work], 0.0)
    wall = dict(cpu)
    control.ready()  # -> ready
    while control.running:
        for function in work:
            cpu_begin, wall_begin = time.thread_time(), time.perf_counter()
            function()  # -> burn50, burn30, burn20, nap
            cpu[function.__name__] += time.thread_time() - cpu_begin
            wall[function.__name__] += time.perf_counter() - wall_begin
        control.progress[0] += 1
    control.truth(cpu=cpu, wall=wall)


if __name__ == "__main__":
    main()  # -> main
