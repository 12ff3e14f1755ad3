# SPDX-License-Identifier: Apache-2.0
"""What it costs a program to have a call traced."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pystrobe import _core

#: What the machine does beside is in one or two of them.
_ROUNDS = 5


def _middle(values: Sequence[float]) -> float:
    """Without ``statistics``, which loads much that the program has no use for."""
    return sorted(values)[len(values) // 2]


def _tree(depth: int) -> None:
    if depth:
        _tree(depth - 1)
        _tree(depth - 1)


def _ns_per_call() -> float:
    """Of calls within calls, which cost more than those of a loop. The middle one of some tries:
    the fastest tell what a CPU does at its best, which is not how it runs a program."""
    depth, tries = 7, 12
    taken = []
    for _ in range(tries):
        begin = time.perf_counter_ns()
        _tree(depth)
        taken.append(time.perf_counter_ns() - begin)
    return _middle(taken) / ((2 << depth) - 1)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Cost:
    """Of a call that is traced, in nanoseconds."""

    engine: str  #: that it is the cost of
    whole: float = 0.0
    in_callee: float = 0.0  #: of that, what the function called has; its caller has the rest


@functools.cache
def cost_of_a_call(engine: str, builtins: bool, wall_only: bool) -> Cost:
    """With traces of its own, once in a process for each engine and way."""
    clock = "wall" if wall_only else "both"
    wholes, parts = [], []
    before = _ns_per_call()
    for _ in range(_ROUNDS):
        tracer = _core.CallTracer(engine, builtins, [], [], [], False, "", False, 0, clock)
        tracer.start(None)
        try:
            traced = _ns_per_call()
            for _ in range(200):
                _nothing()
        finally:
            tracer.stop()
        # Before and after: meanwhile the CPU may have become faster, or slower.
        after = _ns_per_call()
        wholes.append(traced - (before + after) / 2)
        before = after
        ((_, _, rows),) = tracer.rows(True)
        # An empty function takes no time, so all that it is told to take is of the tracing.
        own = (_nothing.__name__, _nothing.__code__.co_filename)
        parts += [sums[3] / sums[0] for facts, sums, _ in rows if facts[:2] == own]
    in_callee = _middle(parts or [0.0])  # none is told where there is no memory for it
    return Cost(tracer.engine, max(_middle(wholes), in_callee), in_callee)
