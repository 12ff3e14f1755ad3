# SPDX-License-Identifier: Apache-2.0
"""Python calls and nothing else, a fixed amount of them."""

import measured


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def main():
    for _ in range(200):
        fib(25)


measured.run(main)
