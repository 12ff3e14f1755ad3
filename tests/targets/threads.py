# SPDX-License-Identifier: Apache-2.0
"""Four threads fighting for the interpreter's lock, each with functions of its own."""

import threading
import time

import control


def red_leaf(n):
    return n + 1


def red_branch(n):
    return red_leaf(n) + red_leaf(n)  # -> red_leaf


def red(counts):  # entry
    while control.running:
        red_branch(1)  # -> red_branch
        counts[0] += 1


def green_leaf(n):
    return n + 2


def green_branch(n):
    return green_leaf(n) + green_leaf(n)  # -> green_leaf


def green(counts):  # entry
    while control.running:
        green_branch(1)  # -> green_branch
        counts[1] += 1


def blue_leaf(n):
    return n + 3


def blue_branch(n):
    return blue_leaf(n) + blue_leaf(n)  # -> blue_leaf


def blue(counts):  # entry
    while control.running:
        blue_branch(1)  # -> blue_branch
        counts[2] += 1


def gray_leaf(n):
    return n + 4


def gray_branch(n):
    return gray_leaf(n) + gray_leaf(n)  # -> gray_leaf


def gray(counts):  # entry
    while control.running:
        gray_branch(1)  # -> gray_branch
        counts[3] += 1


def main():
    counts = [0, 0, 0, 0]
    workers = []
    for work in (red, green, blue, gray):
        worker = threading.Thread(target=work, args=(counts,), name=work.__name__)
        worker.start()  # -> threading.py
        workers.append(worker)
    control.ready()  # -> ready
    while control.running:
        time.sleep(0.05)
        control.progress[0] = sum(counts)
    for worker in workers:
        worker.join()  # -> threading.py
    control.truth(rounds=dict(zip(("red", "green", "blue", "gray"), counts)))


if __name__ == "__main__":
    main()  # -> main
