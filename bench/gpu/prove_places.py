#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where a real GPU's work and its idle time come from: CUDA graphs, what the program did meanwhile,
ranges of PyTorch's. prove_places.py OUT_DIRECTORY. See run_on_device.sh."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pystrobe
import torch
from proving import check, profiled, prove_all
from pystrobe import gpu

results: dict[str, Any] = {}


# ------------------------------------------------------------------------------ graphs

WIDTH, LAYERS, REPLAYS = 256, 3, 50


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def capture(model: Model, x: torch.Tensor) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        model(x)
    return graph


def replay(graph: torch.cuda.CUDAGraph) -> None:
    for _ in range(REPLAYS):
        graph.replay()


def prove_graphs() -> None:
    model, x = Model().cuda(), torch.randn(64, WIDTH, device="cuda")
    before = capture(model, x)
    nodes: list[int] = []

    def work() -> None:
        graph = capture(model, x)
        replay(graph)

    found = profiled(work).gpu
    captured = [w for w in found.sums if any(f.function == "<CUDA graph>" for f in w.frames)]
    for one in captured:
        names = [f.function.rsplit(".", 1)[-1] for f in one.frames]
        at = names.index("<CUDA graph>")
        is_whole = "replay" in names[:at] and "capture" in names[at:] and "forward" in names[at:]
        check(f"{one.short_name} of a graph has both paths", is_whole, " ".join(names))
        nodes.append(one.count // REPLAYS)
    quality = found.quality
    works = sum(w.count for w in captured)
    check(
        "what graphs did is all there",
        works == quality.of_graphs == quality.captured * REPLAYS and quality.unmatched == 0,
        f"{works} works, {quality.captured} captured, {quality.graph_launches} launches",
    )
    check("and nothing is missing", "nothing is missing" in quality.line, quality.line)

    old = profiled(lambda: replay(before)).gpu
    ends = {w.frames[-1].function for w in old.sums}
    check("a graph of before the start has its launch alone", ends == {"<CUDA graph>"}, ends)
    check(
        "and as many works",
        old.quality.records == works,
        f"{old.quality.records} and {works}",
    )
    results["graphs"] = {"works": works, "launches": REPLAYS, "line": quality.line}


def prove_backward_in_graphs() -> None:
    """A whole step, captured: autograd's threads launch while it is."""
    x = torch.randn(64, WIDTH, device="cuda")
    stepped = torch.cuda.make_graphed_callables
    model = Model().cuda()

    def work() -> None:
        graphed = stepped(model, (x.clone().requires_grad_(),))
        for _ in range(5):
            graphed(x.clone().requires_grad_()).sum().backward()

    found = profiled(work).gpu
    backward = [
        w
        for w in found.sums
        if [f.function for f in w.frames].count("<autograd thread>") > 0
        and any(f.function == "<CUDA graph>" for f in w.frames)
    ]
    check("a captured backward pass has works", bool(backward), len(backward))
    check("nothing is missing of it", "nothing is missing" in found.quality.line, found.quality)


# ------------------------------------------------------------------------------ idle time


def share(found: Any, *causes: str) -> float:
    """Of the idle time."""
    whole = sum(idle.total_ns for idle in found.idles)
    part = sum(idle.total_ns for idle in found.idles if idle.cause in causes)
    return float(part / max(1, whole))


def idle_share(found: Any) -> float:
    (use,) = found.uses
    return float(use.idle_ns / (use.idle_ns + use.busy_ns))


def told(name: str, found: Any) -> None:
    causes = {
        cause: round(share(found, cause), 3)
        for cause in ("queue", "launch", "launches", "wait", "host", "unknown")
    }
    results.setdefault("idle", {})[name] = {"idle": round(idle_share(found), 3), **causes}
    print(name, results["idle"][name], flush=True)


def prove_meanwhile(sleeps: Callable[[], None]) -> None:
    with pystrobe.Profiler(mode="wall", gpu=True) as profiler:
        sleeps()
    report: Any = profiler.profile.gpu
    found = report.meanwhile
    check("sleeps are known one by one", 0.39e9 <= found.gaps_ns <= 0.45e9, found.gaps_ns)
    check("and samples cover them", found.wall_ns > 0.9 * found.gaps_ns, found.wall_ns)
    (name, share), *_ = [
        (line.frame.function if line.frame else "", line.wall_ns / found.wall_ns)
        for line in found.lines
    ]
    is_it = name == f"prove_idle.<locals>.{sleeps.__name__}" and share > 0.9
    check("which were of the line that sleeps", is_it, f"{share:.3f} in {name}")
    check("and used no CPU", found.cpu_ns < 0.1 * found.wall_ns, found.cpu_ns)
    profiler.profile.print(mode="gpu")


def prove_idle() -> None:
    small, large = torch.ones(4, device="cuda"), torch.randn(4096, 4096, device="cuda")
    product = torch.empty_like(large)

    def loads_data() -> None:
        for _ in range(40):
            time.sleep(0.01)
            for _ in range(5):
                small.add_(1)

    def asks_for_results() -> None:
        for _ in range(500):
            float(small.sum().item())

    def launches() -> None:
        for _ in range(20_000):
            small.add_(1)

    def is_busy() -> None:
        for _ in range(200):
            torch.matmul(large, large, out=product)

    for work in (loads_data, asks_for_results, launches, is_busy):
        work()
        profile = profiled(work)
        found = profile.gpu
        told(work.__name__, found)
        if work is loads_data:
            host = sum(i.total_ns for i in found.idles if i.cause == "host")
            check("sleeps of 0.39 s are the host's", 0.39e9 <= host <= 0.45e9, f"{host / 1e9} s")
            places = {i.to_frames[-1].function for i in found.idles if i.cause == "host"}
            check("in the loop", places == {f"prove_idle.<locals>.{work.__name__}"}, places)
            profile.print(mode="gpu")
            prove_meanwhile(work)
        elif work is asks_for_results:
            check(
                "what follows a wait is told so", share(found, "wait", "launch") > 0.6, found.idles
            )
            waits = {wait.frames[-1].function: wait.count for wait in found.waits}
            check("500 waits", waits == {f"prove_idle.<locals>.{work.__name__}": 500}, waits)
        elif work is launches:
            # A launch of 6 us is begun before the kernel of the last one has begun.
            bound = share(found, "launches", "launch")
            check("it is bound by launches", bound > 0.7, bound)
            check("and the device idles", idle_share(found) > 0.3, idle_share(found))
        else:
            check("it is bound by the device", idle_share(found) < 0.03, idle_share(found))


# ------------------------------------------------------------------------------ ranges


def prove_ranges() -> None:
    nvtx = torch.cuda.nvtx
    model, x = Model().cuda(), torch.randn(4096, WIDTH, device="cuda")

    def steps() -> None:
        for _ in range(10):
            nvtx.range_push("step")
            with nvtx.range("forward"):
                y = x
                for i, layer in enumerate(model.layers):
                    with nvtx.range(f"layer_{i}"):
                        y = torch.relu(layer(y))
            with nvtx.range("backward"):
                y.sum().backward()
            nvtx.range_pop()

    steps()
    profile = profiled(steps, timeline=True)
    by_path = {one.path: one for one in profile.ranges}
    print(json.dumps({"/".join(path): one.count for path, one in by_path.items()}))
    step = by_path[("step",)]
    works = sum(w.count for w in profile.gpu.sums)
    check("ten steps", step.count == 10, step.count)
    check(
        "all works are of a step",
        sum(s.works for s in step.streams) == works,
        f"{step.streams} and {works}",
    )
    layers = [by_path[("step", "forward", f"layer_{i}")] for i in range(LAYERS)]
    check("layers within forward", all(one.count == 10 for one in layers), layers)
    total_ns = sum(w.total_ns for w in profile.gpu.sums)
    check(
        "a step is busy for all that its kernels took",
        sum(s.busy_ns for s in step.streams) == total_ns,
        f"{step.streams} and {total_ns}",
    )
    backward = by_path[("step", "backward")]
    check(
        "what autograd launches is of backward",
        sum(s.works for s in backward.streams) > 10 * LAYERS,
        backward,
    )
    profile.print(mode="gpu")
    profile.save(Path(sys.argv[1]) / "ranges.trace.json")
    profile.save(Path(sys.argv[1]) / "ranges.strobe")


# ------------------------------------------------------------------------------ others


def prove_torchs_profiler_is_told() -> None:
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(4, device="cuda")
    with pystrobe.Profiler(mode="gpu") as profiler, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(activities=[ProfilerActivity.CUDA]):
            for _ in range(100):
                x.add_(1)
            torch.cuda.synchronize()
    texts = [str(one.message) for one in caught if "CUPTI" in str(one.message)]
    check("torch.profiler is told once", len(texts) == 1, texts)
    found: Any = profiler.profile.gpu
    check("and ours goes on", found.quality.records == 100, found.quality.line)


def main() -> int:
    out = Path(sys.argv[1])
    check("ranges are heard", gpu.why_no_ranges() is None, gpu.why_no_ranges())
    proofs = (
        prove_graphs,
        prove_backward_in_graphs,
        prove_idle,
        prove_ranges,
        prove_torchs_profiler_is_told,
    )
    return prove_all(proofs, results, out / "places.json")


if __name__ == "__main__":
    sys.exit(main())
