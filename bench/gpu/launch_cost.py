#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a profiler of kernels costs a program that launches them: launch_cost.py PROFILER [WORK...]

Blocks of each work before it was ever used; then with it and after it, in turn. Prints JSON: for
each work the median before in microseconds, and the ratios of the others to that.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

LAUNCHES = 20_000
CYCLES = 7
DEPTHS = (3, 20, 60)


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
    "step, bound by launches": lambda: steps_of(2, 32, 256, 100),
    "step, bound by the GPU": lambda: steps_of(24, 512, 1024, 20),
}


def plain_of(work: Callable[[], float]) -> float:
    work()
    return statistics.median(work() for _ in range(CYCLES))


def cost_of(
    profiler: Callable[[], AbstractContextManager[object]],
    work: Callable[[], float],
    plain: float,
) -> dict[str, float]:
    on, after = [], []
    for _ in range(CYCLES):
        with profiler():
            on.append(work() / plain)
        after.append(work() / plain)
    return {
        "plain_us": plain,
        "on": statistics.median(on),
        "on_min": min(on),
        "on_max": max(on),
        "after": statistics.median(after),
    }


def main() -> None:
    profiler = PROFILERS[sys.argv[1]]
    works = {name: WORKS[name]() for name in sys.argv[2:] or WORKS}
    # Before any of it, in a process of its own: some profilers leave launches slower for good.
    plain = {name: plain_of(work) for name, work in works.items()}
    print(json.dumps({name: cost_of(profiler, works[name], plain[name]) for name in works}))


if __name__ == "__main__":
    main()
