# SPDX-License-Identifier: Apache-2.0
"""Decorators, lambdas, comprehensions, closures, methods, properties and context managers."""

import contextlib
import functools

import control


def wrap(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)  # -> decorated_leaf

    return wrapper


@wrap
def decorated_leaf(n):
    return n + 1


def call_decorated():
    return decorated_leaf(1)  # -> wrapper


def leaf(n):
    return n * 2


def list_of_leaves():
    return [leaf(n) for n in range(6)]  # -> <listcomp>, leaf


def set_of_leaves():
    return {leaf(n) for n in range(6)}  # -> <setcomp>, leaf


def dict_of_leaves():
    return {n: leaf(n) for n in range(6)}  # -> <dictcomp>, leaf


def grid():
    return [[leaf(x + y) for x in range(3)] for y in range(3)]  # -> <listcomp>, leaf


def with_lambda():
    double = lambda n: leaf(n) + leaf(n)  # noqa: E731  # -> leaf
    return double(1) + double(2)  # -> <lambda>


def make_adder(step):
    def add(n):
        return leaf(n) + step  # -> leaf

    return add


ADD = make_adder(3)


def with_closure():
    return ADD(1) + ADD(2)  # -> add


class Shape:
    factor = 3

    @property
    def area(self):
        return leaf(self.factor)  # -> leaf

    @classmethod
    def build(cls):
        return leaf(cls.factor)  # -> leaf

    @staticmethod
    def plain(n):
        return leaf(n)  # -> leaf

    def __getattr__(self, name):
        return leaf(len(name))  # -> leaf


SHAPE = Shape()


def with_class():
    total = SHAPE.area  # -> area
    total += Shape.build()  # -> build
    total += Shape.plain(2)  # -> plain
    return total + SHAPE.missing  # -> __getattr__


@functools.lru_cache(maxsize=4)
def cached(n):
    return leaf(n)  # -> leaf


def with_cache():
    for n in range(8):
        cached(n)  # -> cached


def add_three(a, b, c):
    return leaf(a + b + c)  # -> leaf


PARTIAL = functools.partial(add_three, 1, 2)


def with_partial():
    return PARTIAL(3)  # -> add_three


@contextlib.contextmanager
def managed():  # entry
    leaf(1)  # -> leaf
    yield 2
    leaf(3)  # -> leaf


def with_manager():
    with managed() as value:  # -> contextlib.py
        leaf(value)  # -> leaf, contextlib.py


def main():
    control.ready()  # -> ready
    while control.running:
        call_decorated()  # -> call_decorated
        list_of_leaves()  # -> list_of_leaves
        set_of_leaves()  # -> set_of_leaves
        dict_of_leaves()  # -> dict_of_leaves
        grid()  # -> grid
        with_lambda()  # -> with_lambda
        with_closure()  # -> with_closure
        with_class()  # -> with_class
        with_cache()  # -> with_cache
        with_partial()  # -> with_partial
        with_manager()  # -> with_manager
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
