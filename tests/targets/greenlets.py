# SPDX-License-Identifier: Apache-2.0
"""Greenlets that run C functions only: half of the time there is no Python frame at all.

Truth: wall seconds in a greenlet without Python, and in work().
"""

import time

import control
import greenlet

NAP = 0.002


def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def main():
    spent = {"outside": 0.0, "work": 0.0}
    control.ready()
    while control.running:
        begin = time.perf_counter()
        greenlet.greenlet(time.sleep).switch(NAP)
        middle = time.perf_counter()
        greenlet.greenlet(work).switch(NAP)
        spent["outside"] += middle - begin
        spent["work"] += time.perf_counter() - middle
        control.progress[0] += 1
    control.truth(**spent)


if __name__ == "__main__":
    main()
