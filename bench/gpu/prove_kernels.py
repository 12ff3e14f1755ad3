#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels joined to the Python calls that launched them, on a real GPU: are all of them there, and
what does it cost? prove_kernels.py OUT_DIRECTORY. See run_on_device.sh."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pystrobe
import torch
from launch_cost import CUPTIS, PROFILERS, WORKS, steps_of
from proving import check, profiled, prove_all
from pystrobe import gpu

# What launches are meant to cost with us, by how the name of the work begins. Told and not
# demanded: CUPTI alone may take more on a machine.
GOALS = {
    "pystrobe": {"add": 1.20, "step, bound by launches": 1.10, "step, bound by the GPU": 1.01},
    "pystrobe, launches": {"": 1.05},
}
# Time with ours, by time with CUPTI alone, on whatever machine this is.
MOST_ABOVE = 1.10
MOST_LEFT = 0.05
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


def prove_launches() -> None:
    x = torch.ones(4, device="cuda")
    step = steps_of(2, 32, 256, 10)
    step()

    def both() -> None:
        for _ in range(1_000):
            torch.add(x, x)
        step()

    with pystrobe.Profiler(mode="gpu", gpu="launches") as profiler:
        both()
    counted = profiler.profile.gpu
    assert counted is not None
    recorded = profiled(both).gpu

    def by_name(works: Any) -> dict[str, int]:
        names: dict[str, int] = {}
        for row in works.kernels:
            if row.kind == "kernel":
                names[row.name] = names.get(row.name, 0) + row.count + row.untimed
        return names

    check(
        "launches counted by name are the kernels recorded",
        by_name(counted) == by_name(recorded),
        {
            name: (count, by_name(recorded).get(name, 0))
            for name, count in by_name(counted).items()
            if by_name(recorded).get(name, 0) != count
        },
    )
    check("none is missing", counted.quality.line.startswith("good"), counted.quality.line)


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


def prove_cost() -> None:
    rows: dict[str, dict[str, Any]] = {name: {} for name in PROFILERS}
    results["cost"] = rows
    program = str(Path(__file__).parent / "launch_cost.py")
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, text=True
    ) as measuring:
        assert measuring.stdout is not None
        for line in measuring.stdout:
            profiler, work, cost = json.loads(line)
            rows[profiler][work] = cost
            print(f"{profiler}, {work}: {cost or 'not measured'}", flush=True)
    results["goals"] = {profiler: dict(zip(WORKS, goals_of(profiler))) for profiler in GOALS}
    for profiler, goals in results["goals"].items():
        for work, goal in goals.items():
            check_cost(f"{profiler}, {work}", rows[profiler].get(work), goal)


def goals_of(profiler: str) -> list[float]:
    goals = GOALS[profiler].items()
    return [next(goal for begin, goal in goals if work.startswith(begin)) for work in WORKS]


def check_cost(name: str, cost: dict[str, float] | None, goal: float) -> None:
    if cost is None:
        check(f"{name}: was measured", False, cost)
        return
    above = cost["above_cupti"]
    check(
        f"{name}: at most x{MOST_ABOVE} of CUPTI alone",
        above <= MOST_ABOVE,
        ranged(cost, "above_cupti"),
    )
    after = ranged(cost, "after")
    check(f"{name}: leaves {MOST_LEFT} behind at most", cost["after"] <= 1 + MOST_LEFT, after)
    verdict = "met" if cost["on"] <= goal else "missed"
    print(f"     x{cost['on']:.3f}: the goal of x{goal} is {verdict}")


def ranged(cost: dict[str, float], name: str) -> str:
    return f"x{cost[name]:.3f} ({cost[f'{name}_min']:.3f} to {cost[f'{name}_max']:.3f})"


def table() -> str:
    """What each profiler costs, for people."""
    lines = [
        "| while it runs, and after it | " + " | ".join(WORKS) + " |",
        "| --- |" + " ---: |" * len(WORKS),
    ]
    for name, row in results.get("cost", {}).items():
        cells = [
            f"{cost['on']:.2f}, {cost['after']:.2f}" if cost else "not measured"
            for cost in map(row.get, WORKS)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        if goals := results.get("goals", {}).get(name):
            cells = [f"{goals[work]:.2f}" for work in WORKS]
            lines.append(f"| {name}: the goal | " + " | ".join(cells) + " |")
    for name, cupti in CUPTIS.items():
        row = results.get("cost", {}).get(name, {})
        cells = [
            f"{cost['above_cupti']:.2f}" if cost else "not measured" for cost in map(row.get, WORKS)
        ]
        lines.append(f"| {name} / {cupti} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    out = Path(sys.argv[1])
    # torch.profiler last: it keeps CUPTI.
    proofs = (prove_paths, prove_launches, prove_schedule, prove_counts, prove_cost)
    status = prove_all(proofs, results, out / "kernels.json")
    (out / "kernels.md").write_text(table(), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
