# SPDX-License-Identifier: Apache-2.0
"""A greenlet works in Python, and switches to the one that began it again and again."""

import control
import greenlet


def leaf():
    total = 0
    for i in range(3000):
        total += i
    return total


def loop():
    while control.running:
        leaf()  # -> leaf
        control.progress[0] += 1
        greenlet.getcurrent().parent.switch()


def main():
    works = greenlet.greenlet(loop)
    control.ready()  # -> ready
    while control.running:
        works.switch()


if __name__ == "__main__":
    main()  # -> main
