#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Beside torch.compile, which has a hook of its own for frames: calls are counted, samples taken,
kernels joined, and what it compiles stays right. prove_compiled.py OUT_DIRECTORY. See
run_on_device.sh."""

from __future__ import annotations

import sys
import time
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pystrobe
import torch
from proving import check, profiled, prove_all

ROUNDS = 10
BACKENDS = ("eager", "inductor")
ENGINES: tuple[Literal["monitoring", "setprofile"], ...] = ("monitoring", "setprofile")
MODES: tuple[Literal["cpu", "wall"], ...] = ("cpu", "wall")


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def model(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = helper(x)
    return x


def compiled(backend: str, at: torch.Tensor, beforehand: bool) -> Any:
    torch._dynamo.reset()
    function = torch.compile(model, backend=backend)
    if beforehand:
        function(at)
    return function


def prove_traces() -> None:
    x = torch.randn(1024, device="cuda")
    right = model(x)
    for backend, engine, beforehand in product(BACKENDS, ENGINES, (True, False)):
        function = compiled(backend, x, beforehand)
        with pystrobe.Tracer(engine=engine) as tracer:
            for _ in range(ROUNDS):
                got = function(x)
            helper(x)
        told = {name.partition(":")[2]: calls for name, calls in tracer.call_counts().items()}
        seen = {name: told.get(name, 0) for name in ("model", "helper")}
        # The helper is part of what the model was compiled to.
        what = f"{backend}, {engine}, compiled {'before' if beforehand else 'inside'}"
        check(f"calls: {what}", seen == {"model": ROUNDS, "helper": 1}, seen)
        same = torch.allclose(got, right) and torch.allclose(function(x), right)
        check(f"what was compiled is right: {what}", same, same)


def prove_samples() -> None:
    x = torch.randn(1024, device="cuda")
    for backend, mode in product(BACKENDS, MODES):
        function = compiled(backend, x, False)
        with pystrobe.Profiler(mode=mode, rate=1000) as profiler:
            end = time.perf_counter() + 0.5
            while time.perf_counter() < end:
                function(x)
        torch.cuda.synchronize()
        profile = profiler.profile
        names = {row.name for row in profile.top(1000)}
        check(f"samples: {backend}, {mode}", profile.quality.taken > 100, profile.quality.taken)
        compilers = sorted(name for name in names if "compile_inner" in name)
        seen = compilers or f"none of {len(names)} functions"
        check(f"of the compiler, too: {backend}, {mode}", bool(compilers), seen)


def prove_kernels() -> None:
    x = torch.randn(1024, device="cuda")
    function = compiled("inductor", x, True)

    def work() -> None:
        for _ in range(100):
            function(x)
        torch.cuda.synchronize()

    found = profiled(work).gpu
    kernels = {row.short_name: row.count for row in found.kernels if row.kind == "kernel"}
    check("one kernel for all of the model", list(kernels.values()) == [100], kernels)
    paths = {frame.function for sum_ in found.sums for frame in sum_.frames}
    check("launched by who called it", "prove_kernels.<locals>.work" in paths, sorted(paths))


def main() -> int:
    proofs = (prove_traces, prove_samples, prove_kernels)
    return prove_all(proofs, {}, Path(sys.argv[1]) / "compiled.json")


if __name__ == "__main__":
    sys.exit(main())
