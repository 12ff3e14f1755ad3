#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profilers of kernels cost a program that launches them: launch_cost.py [PROFILER...]

Of each with each work blocks before it was ever used; then with it and after it, in turn. Prints a
line of JSON for each pair: profiler, work, and the median before in microseconds; "on", blocks with
it beside those right before and after them, and "after", those that come after it beside the ones
before it was ever used, both as ratios to blocks right behind them of a process that uses none; or
null where it could not be measured.
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

LAUNCHES = 10_000
CYCLES = 9
WARM_UP_S = 0.5  # of a process just forked, whose pages are its parent's, and of its CPU's clock
PATIENCE_S = 60.0  # for a pair
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
    "Proton": lambda: proton("shadow"),
    "Proton, Python paths": lambda: proton("python"),
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
    "step, bound by launches": lambda: steps_of(2, 32, 256, 50),
    "step, bound by the GPU": lambda: steps_of(24, 512, 1024, 10),
}


@contextmanager
def on_one_cpu() -> Iterator[None]:
    """The calling thread: CPUs differ, each has its own speed at a time."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    yield
    os.sched_setaffinity(0, cpus)


class Beside:
    """A process that does the same work and never uses a profiler: what changes between two of its
    blocks has changed on the machine."""

    def __init__(self, work: str) -> None:
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=self.serve, args=(work, theirs))
        self.process.start()
        theirs.close()

    @staticmethod
    def serve(work: str, to: Connection) -> None:
        run = warm(work)
        while True:
            asked_by = to.recv()
            with on_one_cpu():
                taken = run()
            to.send((asked_by, taken))

    def run(self) -> float:
        """One block, in microseconds. From one process at a time; what one asked for that has ended
        meanwhile is passed over."""
        self.pipe.send(os.getpid())
        while True:
            asked_by, taken = self.pipe.recv()
            if asked_by == os.getpid():
                return float(taken)

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def warm(work: str) -> Callable[[], float]:
    run = WORKS[work]()
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_UP_S:
        run()
    return run


def in_turn(run: Callable[[], float], beside: Beside) -> list[tuple[float, float]]:
    """Blocks here, and right behind each one there, on the same CPU."""
    blocks = []
    for _ in range(CYCLES):
        with on_one_cpu():
            here = run()
        blocks.append((here, beside.run()))
    return blocks


def cost_of(profiler: str, work: str, beside: Beside) -> dict[str, float]:
    """To be measured where no profiler has been used: some leave launches slower for good."""
    make, run = PROFILERS[profiler], warm(work)
    plain = in_turn(run, beside)
    before = statistics.median(here / there for here, there in plain)
    with make():
        run()
    last, on = run(), []
    for _ in range(CYCLES):
        with make():
            taken = run()
        behind = run()
        # A machine's speed changes within seconds, by a third: only neighbours are alike.
        on.append(2 * taken / (last + behind))
        last = behind
    after = [here / there / before for here, there in in_turn(run, beside)]
    return {
        "plain_us": statistics.median(here for here, _ in plain),
        "on": statistics.median(on),
        "on_min": min(on),
        "on_max": max(on),
        "after": statistics.median(after),
        "after_min": min(after),
        "after_max": max(after),
    }


def tell(profiler: str, work: str, beside: Beside, to: Connection) -> None:
    to.send(cost_of(profiler, work, beside))


def in_child(profiler: str, work: str, beside: Beside) -> dict[str, float] | None:
    """In a process of its own, which loads CUDA; PyTorch is loaded once. None: not measured."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=tell, args=(profiler, work, beside, theirs))
    child.start()
    theirs.close()
    try:
        cost: dict[str, float] | None = ours.recv() if ours.poll(PATIENCE_S) else None
    except EOFError:
        cost = None  # why, the child has printed
    child.kill()
    child.join()
    return cost


def main() -> None:
    names = sys.argv[1:] or list(PROFILERS)
    # Profilers in turn for each work, so that what changes meanwhile changes for all.
    for work in WORKS:
        beside = Beside(work)
        for name in names:
            print(json.dumps([name, work, in_child(name, work, beside)]), flush=True)
        beside.end()


if __name__ == "__main__":
    main()
