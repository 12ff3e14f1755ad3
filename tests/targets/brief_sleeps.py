# SPDX-License-Identifier: Apache-2.0
"""Threads that live for a while and hardly ever hold the lock, beside one that always wants it."""

import threading
import time

import control

lives = []


def sleep_once():
    begin = time.monotonic()
    time.sleep(0.2)
    lives.append((begin, time.monotonic()))


def main():
    control.ready()
    while control.running:
        threading.Thread(target=sleep_once, name="brief").start()
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            control.progress[0] += 1
    control.truth(lives=lives)


if __name__ == "__main__":
    main()
