# SPDX-License-Identifier: Apache-2.0
"""A stack of a given depth (first argument, default 200) with a busy leaf, or one that moves.

With "moving" the lowest levels are left and entered again all the time.
"""

import sys

import control


def descend(n, moving):
    if n:
        descend(n - 1, moving)  # -> descend
    elif moving:
        while control.running:
            for height in range(8):
                climb(height)  # -> climb
            control.progress[0] += 1
    else:
        spin()  # -> spin


def climb(n):
    if n:
        return climb(n - 1) + 1  # -> climb
    return 0


def spin():
    total = 0
    while control.running:
        for i in range(1000):
            total += i
        control.progress[0] += 1
    return total


def main():
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    sys.setrecursionlimit(depth + 1000)
    control.ready(depth=depth)  # -> ready
    descend(depth, "moving" in sys.argv)  # -> descend


if __name__ == "__main__":
    main()  # -> main
