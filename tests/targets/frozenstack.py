# SPDX-License-Identifier: Apache-2.0
"""Threads that each wait at a known line of a known stack, with known local variables."""

import threading

import control


def wait_here(gate, number):
    text = "thread %d" % number
    values = [number, number * 2]
    gate.wait()  # -> threading.py
    return text, values


def middle(gate, number):
    return wait_here(gate, number)  # -> wait_here


def outer(gate, number):  # entry
    middle(gate, number)  # -> middle


def main():
    gate = threading.Event()
    for number in range(3):
        threading.Thread(target=outer, args=(gate, number), name="waits-%d" % number).start()
    control.ready()  # -> ready
    try:
        while control.running:
            control.signal.pause()
    finally:
        gate.set()


if __name__ == "__main__":
    main()  # -> main
