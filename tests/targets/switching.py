# SPDX-License-Identifier: Apache-2.0
"""A greenlet works in Python that C code calls back, and switches to the one that began it again
and again."""

import ctypes

import control
import greenlet


def leaf():
    total = 0
    for i in range(3000):
        total += i
    return total % 7


CALL_LEAF = ctypes.CFUNCTYPE(ctypes.c_int)(leaf)


def loop():
    while control.running:
        CALL_LEAF()  # -> leaf
        control.progress[0] += 1
        greenlet.getcurrent().parent.switch()


def main():
    works = greenlet.greenlet(loop)
    control.ready()  # -> ready
    while control.running:
        works.switch()


if __name__ == "__main__":
    main()  # -> main
