#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory and sums over ten million launches, and graphs that are captured while a profiler ends.
prove_bounds.py OUT_DIRECTORY. See run_on_device.sh."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pystrobe
import torch
from helper import NOTHING, build, cupti_alone, launch
from proving import check, prove_all

LAUNCHES = 10_000_000
MOST_MB = 64
results: dict[str, Any] = {}


# ------------------------------------------------------------------------------ memory


def resident_mb() -> float:
    """Of this process, but for what it has of files."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


@contextmanager
def growing() -> Iterator[list[float]]:
    """Fills the list with MB that the process had more, at intervals."""
    before, ends = resident_mb(), threading.Event()
    more: list[float] = []

    def look() -> None:
        while not ends.wait(0.05):
            more.append(resident_mb() - before)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield more
    finally:
        ends.set()
        thread.join()


def grown(launches: int, which: str) -> dict[str, Any]:
    """In a process of its own: what it took, and what there was to be told."""
    torch.zeros(1, device="cuda")
    build()
    launch(NOTHING, "nothing", 1000)
    told: dict[str, Any] = {}
    with growing() as more:
        begin = time.perf_counter()
        if which == "alone":
            with cupti_alone(records=True):
                launch(NOTHING, "nothing", launches)
        else:
            with pystrobe.Profiler(mode="gpu") as profiler:
                launch(NOTHING, "nothing", launches)
            found: Any = profiler.profile.gpu
            quality = found.quality
            told = {
                "launches": quality.kernel_launches,
                "records": quality.records,
                "counts": [one.count for one in found.sums],
                "dropped": quality.dropped,
                "line": quality.line,
            }
        told["seconds"] = time.perf_counter() - begin
    half = len(more) // 2
    return {**told, "MB": max(more), "MB of the first half": max(more[:half], default=0.0)}


def in_process(launches: int, which: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--grown", str(launches), which]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=150)
    answer: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return answer


def prove_ten_million_launches() -> None:
    alone = in_process(LAUNCHES // 10, "alone")
    ours = in_process(LAUNCHES, "ours")
    results["ten million"] = {"ours": ours, "CUPTI alone, a million": alone}
    counted = (ours["launches"], ours["records"], ours["counts"], ours["dropped"])
    check("none is lost", counted == (LAUNCHES, LAUNCHES, [LAUNCHES], 0), counted)
    own = ours["MB"] - alone["MB"]
    check(
        f"less than {MOST_MB} MB more than CUPTI by itself",
        own < MOST_MB,
        f"{own:.1f} MB ({ours['MB']:.1f} and {alone['MB']:.1f})",
    )
    later = ours["MB"] - ours["MB of the first half"]
    check("and no more with time", later < 1, f"{later:.1f} MB in the second half")


# ------------------------------------------------------------------------------ captures


def captured_while(mode: str, function: Callable[[], object]) -> tuple[list[str], float]:
    """What failed of a capture, of two additions to 1, in the middle of which another thread calls
    `function`; and what the graph makes."""
    x = torch.ones(1024, device="cuda")
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    begun, ends = threading.Event(), threading.Event()
    failures: list[str] = []

    def capture() -> None:
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode=mode)
                x.add_(1)
                begun.set()
                ends.wait()
                x.add_(1)
                graph.capture_end()
        except Exception as error:
            failures.append(repr(error))
            begun.set()

    torch.cuda.synchronize()
    thread = threading.Thread(target=capture)
    thread.start()
    begun.wait()
    try:
        function()
    finally:
        ends.set()
        thread.join()
    if not failures:
        graph.replay()
    return failures, float(x[0].item())


def prove_a_capture_meanwhile() -> None:
    """Another thread captures a graph while a profiler ends."""
    for mode in ("thread_local", "global"):
        profiler = pystrobe.Profiler(mode="gpu")
        profiler.start()
        failures, made = captured_while(mode, profiler.stop)
        check(f"{mode}: the capture ends as it would, and does its work", made == 3, failures)
        found: Any = profiler.profile.gpu
        told = "captured into a graph" in found.quality.line
        check(f"{mode}: why nothing was waited for is told", told, found.quality.line)


def main() -> int:
    if sys.argv[1] == "--grown":
        print(json.dumps(grown(int(sys.argv[2]), sys.argv[3])))
        return 0
    proofs = (prove_a_capture_meanwhile, prove_ten_million_launches)
    return prove_all(proofs, results, Path(sys.argv[1]) / "bounds.json")


if __name__ == "__main__":
    sys.exit(main())
