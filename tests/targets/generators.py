# SPDX-License-Identifier: Apache-2.0
"""Generators inside generators, resumed by for, next, send, yield from, and by different callers.

The call that makes a generator is a call too: the new frame is on the stack until it is made.
"""

import control


def inner(n):
    for i in range(n):
        yield i
        yield i + 1


def middle(n):
    for value in inner(n):  # -> inner
        yield value * 2


def outer(n):
    for value in middle(n):  # -> middle
        yield value - 1


def consume_nested():
    total = 0
    for value in outer(5):  # -> outer
        total += value
    return total


def delegate_low(n):
    for i in range(n):
        yield i


def delegate_high(n):
    yield from delegate_low(n)  # -> delegate_low
    yield n
    yield from delegate_low(n)  # -> delegate_low


def consume_delegated():
    return sum(delegate_high(6))  # -> delegate_high


def accumulator():
    total = 0
    while True:
        received = yield total
        total += received


def sender():
    machine = accumulator()  # -> accumulator
    next(machine)  # -> accumulator
    for i in range(8):
        machine.send(i)  # -> accumulator
    machine.close()  # -> accumulator


def shared(n):
    for i in range(n):
        yield i * i


def first_half(source):
    return next(source) + next(source)  # -> shared


def second_half(source):
    total = 0
    for value in source:  # -> shared
        total += value
    return total


def hand_over():
    source = shared(8)  # -> shared
    return first_half(source) + second_half(source)  # -> first_half, second_half


def square(i):
    return i * i


def expression():
    return sum(square(i) for i in range(6))  # -> <genexpr>, square


def tree(depth):
    if depth:
        yield from tree(depth - 1)  # -> tree
        yield depth
        yield from tree(depth - 1)  # -> tree


def walk_tree():
    total = 0
    for value in tree(4):  # -> tree
        total += value
    return total


def main():
    control.ready()  # -> ready
    while control.running:
        consume_nested()  # -> consume_nested
        consume_delegated()  # -> consume_delegated
        sender()  # -> sender
        hand_over()  # -> hand_over
        expression()  # -> expression
        walk_tree()  # -> walk_tree
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
