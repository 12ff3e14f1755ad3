# SPDX-License-Identifier: Apache-2.0
"""Calls a function of a C library; another one of it once a file is there."""

import ctypes
import os
import sys

import control


def main():
    library = ctypes.CDLL(sys.argv[1])
    control.ready()  # -> ready
    while control.running:
        if os.path.exists(sys.argv[2]):  # -> exists
            library.burn_second(20)
        else:
            library.burn_first(20)
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
