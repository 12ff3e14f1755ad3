# SPDX-License-Identifier: Apache-2.0
"""Threads that are born, do a little and die, some at once and some after a moment."""

import threading
import time

import control


def short_leaf(n):
    return n + 1


def short_life(n):  # entry
    for i in range(n):
        short_leaf(i)  # -> short_leaf


def long_leaf(n):
    total = 0
    for i in range(n):
        total += i
    return total


def long_life():  # entry
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        long_leaf(200)  # -> long_leaf


def bear(target, arguments):
    child = threading.Thread(target=target, args=arguments)  # -> threading.py
    child.start()  # -> threading.py
    return child


def main():
    control.ready()  # -> ready
    while control.running:
        children = [bear(long_life, ())]  # -> bear
        for n in range(20):
            children.append(bear(short_life, (n * 10,)))  # -> bear
        for child in children:
            child.join()  # -> threading.py
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
