# SPDX-License-Identifier: Apache-2.0
"""Calls from a thread that C made: each has a thread state of its own, for a millisecond or so."""

import ctypes
import sys
import time

import control


def burn():
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass


def called():  # entry
    burn()  # -> burn


def main():
    library = ctypes.CDLL(sys.argv[1])
    callback = ctypes.CFUNCTYPE(None)(called)
    library.start(callback)
    control.ready()  # -> ready
    while control.running:
        time.sleep(0.01)
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
