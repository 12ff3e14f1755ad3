# SPDX-License-Identifier: Apache-2.0
"""Loads two libraries by turns, calls each for a while, and closes it."""

import _ctypes
import ctypes
import sys

import control


def call(path, name):
    handle = _ctypes.dlopen(path, 0)
    address = _ctypes.dlsym(handle, name)
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)(250)  # -> CFUNCTYPE
    _ctypes.dlclose(handle)


def first(path):
    call(path, "burn_first")  # -> call


def second(path):
    call(path, "burn_second")  # -> call


def main():
    control.ready()  # -> ready
    while control.running:
        first(sys.argv[1])  # -> first
        second(sys.argv[2])  # -> second
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
