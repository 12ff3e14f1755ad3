#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profilers of kernels cost a program that launches them: launch_cost.py [PROFILER...]

Of each, in a process of its own, blocks of each work before it was ever used; then with it and
after it, in turn. Right behind each block comes one of a process that never uses a profiler, on the
same CPU. Prints a line of JSON for each pair: profiler, work, and the median before in
microseconds; "on", blocks with it beside those before it was ever used, and "after", those that
come after it, both by the blocks of that other process; of ours "above_cupti", blocks with it
beside those with CUPTI alone, in turn in the same process; or null where it could not be measured.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from typing import Any

import torch
from helper import build, cupti_alone

LAUNCHES = 4_000
CYCLES = 5
WARM_UP_S = 0.3  # of a process just forked, whose pages are its parent's, and of its CPU's clock
PATIENCE_S = 60.0  # for a work, and for those before it
DEPTHS = (3, 20, 60)
# PyTorch may be loaded before; it must not have been used.
FORK = multiprocessing.get_context("fork")


def ours(**options: Any) -> AbstractContextManager[object]:
    import pystrobe

    return pystrobe.Profiler(**options)


def of_torch(*activities: str, **options: Any) -> AbstractContextManager[object]:
    from torch.profiler import ProfilerActivity, profile

    named = [getattr(ProfilerActivity, name) for name in activities]
    made: AbstractContextManager[object] = profile(activities=named, **options)
    return made


@contextmanager
def proton(context: str) -> Iterator[None]:
    import triton.profiler

    with tempfile.TemporaryDirectory() as folder:
        triton.profiler.start(f"{folder}/proton", context=context)
        yield
        triton.profiler.finalize()


PROFILERS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "pystrobe": lambda: ours(mode="gpu"),
    "pystrobe, CPU time too": lambda: ours(gpu=True),
    "pystrobe, launches": lambda: ours(mode="gpu", gpu="launches"),
    "torch.profiler, CUDA": lambda: of_torch("CUDA"),
    "torch.profiler, CPU and CUDA": lambda: of_torch("CPU", "CUDA"),
    "torch.profiler, with_stack": lambda: of_torch("CPU", "CUDA", with_stack=True),
    # What no profiler that uses CUPTI can be below.
    "CUPTI alone, callbacks": lambda: cupti_alone(records=False),
    "CUPTI alone, with records": lambda: cupti_alone(records=True),
    "Proton": lambda: proton("shadow"),
    "Proton, Python paths": lambda: proton("python"),
}

#: What of the cost of ours is CUPTI's own.
CUPTIS = {
    "pystrobe": "CUPTI alone, with records",
    "pystrobe, launches": "CUPTI alone, callbacks",
}


def at_depth(depth: int, work: Callable[[], float]) -> float:
    return work() if depth <= 1 else at_depth(depth - 1, work)


def add_loop() -> float:
    x = torch.ones(4, device="cuda")
    add = torch.add
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(LAUNCHES):
        add(x, x)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / LAUNCHES * 1e6


def steps_of(batch: int, length: int, width: int, count: int) -> Callable[[], float]:
    """Forward and backward of a transformer of four layers, in bfloat16."""
    layer = torch.nn.TransformerEncoderLayer(
        width, 4, 4 * width, dropout=0.0, batch_first=True, device="cuda", dtype=torch.bfloat16
    )
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    x = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()

    def run() -> float:
        step()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count * 1e6

    return run


def add_at(depth: int) -> Callable[[], Callable[[], float]]:
    return lambda: lambda: at_depth(depth, add_loop)


WORKS: dict[str, Callable[[], Callable[[], float]]] = {
    **{f"add, depth {depth}": add_at(depth) for depth in DEPTHS},
    "step, bound by launches": lambda: steps_of(2, 32, 256, 16),
    "step, bound by the GPU": lambda: steps_of(24, 512, 1024, 12),
}


@contextmanager
def on_last_cpus(count: int) -> Iterator[None]:
    """The calling thread, and those that it starts: CPUs differ, each has its own speed at a
    time."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cpus)[-count:])
    yield
    os.sched_setaffinity(0, cpus)


class Beside:
    """A process that does the same work and never uses a profiler: what changes between two of its
    blocks has changed on the machine."""

    def __init__(self) -> None:
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=self.serve, args=(theirs,))
        self.process.start()
        theirs.close()

    @staticmethod
    def serve(to: Connection) -> None:
        runs = {work: warm(work) for work in WORKS}
        while True:
            asked_by, work = to.recv()
            with on_last_cpus(1):
                taken = runs[work]()
            to.send((asked_by, taken))

    def run(self, work: str) -> float:
        """One block, in microseconds. From one process at a time; what one asked for that has ended
        meanwhile is passed over."""
        self.pipe.send((os.getpid(), work))
        while True:
            asked_by, taken = self.pipe.recv()
            if asked_by == os.getpid():
                return float(taken)

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def warm(work: str) -> Callable[[], float]:
    run = WORKS[work]()
    # Autograd's thread is born here, and stays beside the one that calls it.
    with on_last_cpus(2):
        begin = time.perf_counter()
        while time.perf_counter() - begin < WARM_UP_S:
            run()
    return run


class Pairs:
    """Blocks of one work here, and right behind each one there, on the same CPU."""

    def __init__(self, work: str, beside: Beside) -> None:
        self.work, self.beside = work, beside
        self.run = warm(work)
        self.before = [self.take() for _ in range(CYCLES)]

    def take(self) -> tuple[float, float]:
        with on_last_cpus(1):
            here = self.run()
        return here, self.beside.run(self.work)


def spread(name: str, ratios: list[float]) -> dict[str, float]:
    return {
        name: statistics.median(ratios),
        f"{name}_min": min(ratios),
        f"{name}_max": max(ratios),
    }


def cost_of(profiler: str, pairs: Pairs) -> dict[str, float]:
    before = statistics.median(map(ratio, pairs.before))
    cupti = CUPTIS.get(profiler)

    def take(which: str) -> tuple[float, float]:
        with PROFILERS[which]():
            # What a start takes is no part of what a launch does.
            pairs.run()
            return pairs.take()

    with PROFILERS[profiler]():
        pairs.run()
    on, off, above = [], [pairs.take()], []
    for turn in range(CYCLES):
        both = [name for name in (cupti, profiler) if name]
        # Either is the first in its turn.
        taken = {name: take(name) for name in (both if turn % 2 == 0 else both[::-1])}
        on.append(taken[profiler])
        off.append(pairs.take())
        if cupti:
            above.append(ratio(taken[profiler]) / ratio(taken[cupti]))
    return {
        "plain_us": statistics.median(here for here, _ in pairs.before),
        **spread("on", [ratio(pair) / before for pair in on]),
        **(spread("above_cupti", above) if above else {}),
        **spread("after", [ratio(pair) / before for pair in off]),
    }


def ratio(pair: tuple[float, float]) -> float:
    here, there = pair
    return here / there


def tell(profiler: str, beside: Beside, to: Connection) -> None:
    # All of them before it is used: some leave launches slower for good.
    all_pairs = [Pairs(work, beside) for work in WORKS]
    for pairs in all_pairs:
        to.send((pairs.work, cost_of(profiler, pairs)))


def in_child(profiler: str, beside: Beside) -> dict[str, dict[str, float]]:
    """In a process of its own, which loads CUDA; PyTorch is loaded once. Less than all works: the
    others could not be measured; why, the child has printed."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=tell, args=(profiler, beside, theirs))
    child.start()
    theirs.close()
    costs: dict[str, dict[str, float]] = {}
    try:
        while len(costs) < len(WORKS) and ours.poll(PATIENCE_S):
            work, cost = ours.recv()
            costs[work] = cost
    except EOFError:
        pass
    child.kill()
    child.join()
    return costs


def main() -> None:
    names = sys.argv[1:] or list(PROFILERS)
    build()
    beside = Beside()
    for name in names:
        costs = in_child(name, beside)
        for work in WORKS:
            print(json.dumps([name, work, costs.get(work)]), flush=True)
    beside.end()


if __name__ == "__main__":
    main()
