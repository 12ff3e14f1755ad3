# SPDX-License-Identifier: Apache-2.0
"""Threads, born and dying, that make garbage of cycles with finalizers and weak references: the
collector calls those whatever a thread is at, and threads ask for it too.
"""

import collections
import gc
import threading
import weakref

import control

ended = collections.Counter()
revived = collections.deque(maxlen=50)
watched = collections.deque(maxlen=500)


class Node:
    def __init__(self, other):
        self.other = other

    def __del__(self):  # anywhere
        fail()  # -> fail
        finish("node")  # -> finish


class Revived(Node):
    def __del__(self):  # anywhere
        revive(self)  # -> revive


def fail():
    try:
        raise_it()  # -> raise_it
    except LookupError:
        finish("exception")  # -> finish


def raise_it():
    raise LookupError


def revive(node):
    finish("revived")  # -> finish
    node.other = None
    revived.append(node)


def finish(kind):
    ended[kind] += 1


def forgotten(reference):  # anywhere
    finish("reference")  # -> finish


def cycle(kind):
    first = kind(None)  # -> __init__
    first.other = kind(first)  # -> __init__
    return first


def litter(n):
    for _ in range(n):
        watched.append(weakref.ref(cycle(Node), forgotten))  # -> cycle
        cycle(Revived)  # -> cycle


def deep(n):
    keep = [n, [n]]
    if n:
        deep(n - 1)  # -> deep
    return keep


def lists(n):
    for i in range(n):
        yield [[i], {"i": i}]


def use_lists():
    return sum(len(pair) for pair in lists(40))  # -> <genexpr>, lists


def collect():
    gc.collect(0)


def collect_all():
    gc.collect()


def work(n):  # entry
    for i in range(n):
        litter(30)  # -> litter
        deep(60)  # -> deep
        use_lists()  # -> use_lists
        collect()  # -> collect
        if i % 10 == 0:
            collect_all()  # -> collect_all


def bear(n):
    child = threading.Thread(target=work, args=(n,))  # -> threading.py
    child.start()  # -> threading.py
    return child


def main():
    gc.set_threshold(200, 5, 5)
    control.ready()  # -> ready
    while control.running:
        children = [bear(n) for n in (3, 7, 11)]  # -> bear, <listcomp>
        work(5)  # -> work
        for child in children:
            child.join()  # -> threading.py
        control.progress[0] += 1
    control.truth(**ended)  # -> truth


if __name__ == "__main__":
    main()  # -> main
