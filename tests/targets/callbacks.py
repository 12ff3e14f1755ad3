# SPDX-License-Identifier: Apache-2.0
"""C code that calls Python back: sort keys, comparison methods, map, re.sub."""

import functools
import re

import control

WORD = re.compile("[a-z]+")
VALUES = [(i * 7919) % 101 for i in range(40)]


def key_low(value):
    return -value


def key_high(value):
    return key_low(value) + 1  # -> key_low


def by_key():
    return sorted(VALUES, key=key_high)  # -> key_high


def difference(a, b):
    return a - b


def by_comparison():
    return sorted(VALUES, key=functools.cmp_to_key(difference))  # -> difference


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return less(self.value, other.value)  # -> less


def less(a, b):
    return a < b


OBJECTS = [Ordered(value) for value in VALUES]  # -> <listcomp>, __init__


def by_method():
    return sorted(OBJECTS)  # -> __lt__


def twice(value):
    return value * 2


def mapped():
    return list(map(twice, VALUES))  # -> twice


def shout(match):
    return upper(match.group())  # -> upper


def upper(text):
    return text.upper()


def substitute():
    return WORD.sub(shout, "one 2 three 4 five")  # -> shout


def nested_key(value):
    return min(VALUES[:5], key=key_low)  # -> key_low


def sort_in_sort():
    return sorted(VALUES[:8], key=nested_key)  # -> nested_key


def main():
    control.ready()  # -> ready
    while control.running:
        by_key()  # -> by_key
        by_comparison()  # -> by_comparison
        by_method()  # -> by_method
        mapped()  # -> mapped
        substitute()  # -> substitute
        sort_in_sort()  # -> sort_in_sort
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
