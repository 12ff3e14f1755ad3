# SPDX-License-Identifier: Apache-2.0
"""Python calls and nothing else, a fixed amount of them."""

import measured


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def once():
    fib(25)


def main():
    for _ in range(200):
        once()


measured.run(main)
