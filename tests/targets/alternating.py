# SPDX-License-Identifier: Apache-2.0
"""Two callers with a leaf each, in turn: hot_a above leaf_b cannot be."""

import control


def leaf_a(n):
    total = 0
    for i in range(n):
        total += i
    return total


def leaf_b(n):
    total = 0
    for i in range(n):
        total ^= i
    return total


def hot_a(n):
    total = leaf_a(n)  # -> leaf_a
    return total + leaf_a(n)  # -> leaf_a


def hot_b(n):
    total = leaf_b(n)  # -> leaf_b
    return total - leaf_b(n)  # -> leaf_b


def main():
    control.ready()  # -> ready
    while control.running:
        hot_a(3)  # -> hot_a
        hot_b(3)  # -> hot_b
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
