# SPDX-License-Identifier: Apache-2.0
"""Nothing but calls: the slow-down of a profiler shows here first."""

import control


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)  # -> fib


def main():
    control.ready()  # -> ready
    while control.running:
        fib(10)  # -> fib
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
