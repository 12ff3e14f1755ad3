# SPDX-License-Identifier: Apache-2.0
"""Mutual recursion of three functions; who calls whom is fixed, the depth is not."""

import control


def ping(n):
    if n == 0:
        return 0
    return pong(n - 1) + 1  # -> pong


def pong(n):
    if n == 0:
        return 0
    return pang(n - 1) + 1  # -> pang


def pang(n):
    if n == 0:
        return 0
    return ping(n - 1) + 1  # -> ping


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)  # -> fib


def main():
    control.ready()  # -> ready
    while control.running:
        for n in range(40):
            ping(n)  # -> ping
        fib(9)  # -> fib
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
