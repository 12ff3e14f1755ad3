#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels joined to the Python calls that launched them, on a real GPU: are all of them there, and
what does it cost? prove_kernels.py OUT_DIRECTORY. See run_on_device.sh."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pystrobe
import torch
from launch_cost import PROFILERS, WORKS, steps_of
from proving import check, failures, profiled
from pystrobe import gpu

# What a launch may cost with us, by how the name of the work begins.
MOST = {"add": 1.20, "step, bound by launches": 1.10, "step, bound by the GPU": 1.01}
results: dict[str, Any] = {}


def counted_by_torch(work: Callable[[], object]) -> int:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    return sum(e.device_type == torch.autograd.DeviceType.CUDA for e in profiler.events())


def prove_counts() -> None:
    x = torch.ones(4, device="cuda")

    def adds() -> None:
        for _ in range(20_000):
            torch.add(x, x)

    quality = profiled(adds).gpu.quality
    check(
        "20,000 launches are 20,000 records",
        quality.kernel_launches == quality.records == 20_000 and quality.unmatched == 0,
        quality,
    )
    steps = steps_of(2, 32, 256, 10)
    steps()
    found = profiled(steps).gpu
    theirs = counted_by_torch(steps)
    works = sum(work.count for work in found.sums)
    check(
        "a transformer's kernels are as many as torch.profiler's",
        works == theirs,
        f"{works} and {theirs}",
    )
    backward = sum(
        work.count
        for work in found.sums
        if any(frame.function == "<autograd thread>" for frame in work.frames)
    )
    nowhere = sum(work.count for work in found.sums if not work.frames)
    check("every one has a path", nowhere == 0, f"{nowhere} without, {backward} by autograd")
    results["transformer"] = {"works": works, "torch": theirs, "backward": backward}


def prove_paths() -> None:
    x = torch.randn(512, 512, device="cuda")

    def square() -> None:
        x * x

    def product() -> None:
        x @ x

    def train() -> None:
        y = x.clone().requires_grad_()
        (y * 2).sum().backward()

    def all_of_them() -> None:
        square()
        product()
        train()

    found = profiled(all_of_them)
    by_function: dict[str, set[str]] = {}
    for work in found.gpu.sums:
        for frame in work.frames:
            by_function.setdefault(frame.function.rsplit(".", 1)[-1], set()).add(work.short_name)
    check(
        "the product's kernel is the product's",
        any("gemm" in k or "cutlass" in k or "xmma" in k for k in by_function.get("product", ())),
        by_function.get("product"),
    )
    check(
        "backward's kernels are backward's",
        bool(by_function.get("<autograd thread>")),
        by_function.get("<autograd thread>"),
    )
    threads = [threading.Thread(target=square) for _ in range(4)]

    def in_threads() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = profiled(in_threads)
    check(
        "threads have their own paths",
        sum(w.count for w in found.gpu.sums if any(f.function.endswith("square") for f in w.frames))
        == 4,
        len(found.gpu.sums),
    )


def prove_schedule() -> None:
    x = torch.ones(4, device="cuda")
    seen: list[int] = []

    def note(profiler: pystrobe.Profiler) -> None:
        found = profiler.profile.gpu
        seen.append(found.quality.kernel_launches if found else -1)

    schedule = gpu.schedule(wait=1, warmup=1, active=2, repeat=2)
    with pystrobe.Profiler(
        gpu=True,
        schedule=schedule,
        on_trace_ready=note,
    ) as profiler:
        for _ in range(10):
            for _ in range(100):
                x.add_(1)
            profiler.step()
    check("each profile of a schedule has its two steps", seen == [200, 200], seen)
    table = profiler.key_averages().table(sort_by="self_cuda_time_total")
    print(table)
    results["key averages"] = table


def cost_of(profiler: str, work: str) -> dict[str, float] | None:
    """In a process of its own; None where it cannot be had."""
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "launch_cost.py"), profiler, work],
        capture_output=True,
        text=True,
        timeout=240,
    )
    lines = ended.stdout.strip().splitlines()
    if ended.returncode != 0 or not lines:
        print(f"not measured: {profiler}: {ended.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    cost: dict[str, float] = json.loads(lines[-1])
    print(f"{profiler}, {work}: {cost}", flush=True)
    return cost


def prove_cost() -> None:
    """Profilers in turn for each work, so that what changes meanwhile changes for all."""
    rows: dict[str, dict[str, Any]] = {name: {} for name in PROFILERS}
    results["cost"] = rows
    for work in WORKS:
        for name, row in rows.items():
            row[work] = cost_of(name, work)
    for begin, most in MOST.items():
        for work in WORKS:
            if work.startswith(begin):
                on = rows["pystrobe"][work]["on"]
                check(f"{work}: at most x{most}", on <= most, f"x{on:.3f}")


def table() -> str:
    """What each profiler costs, for people."""
    lines = [
        "| while it runs, and (after it) | " + " | ".join(WORKS) + " |",
        "| --- |" + " ---: |" * len(WORKS),
    ]
    for name, row in results.get("cost", {}).items():
        cells = [
            f"{cost['on']:.2f} ({cost['after']:.2f})" if cost else "not measured"
            for cost in row.values()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    out = Path(sys.argv[1])
    # torch.profiler last: it keeps CUPTI.
    for prove in (prove_paths, prove_schedule, prove_counts, prove_cost):
        print(f"-- {prove.__name__}", flush=True)
        try:
            prove()
        except Exception:
            traceback.print_exc()
            failures.append(f"{prove.__name__} raised")
    results["failures"] = failures
    (out / "kernels.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "kernels.md").write_text(table(), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
