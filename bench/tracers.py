# SPDX-License-Identifier: Apache-2.0
"""What it costs to trace every call: our engines and other tracers, on each interpreter.

Each run is a process of its own, pinned to one CPU, that times its work before, under and after the
tracer (workloads/traced.py). Tools take turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from observe import ToolError, spread
from own_interpreters import Own, own_interpreters
from running import apart

PROGRAM = paths.BENCH / "workloads" / "traced.py"
#: Of each workload as many units as take some 50 ms alone.
UNITS = {"fib": 30, "loop": 10, "builtins": 30, "mixed": 20}
REPEATS = 3
TIMEOUT_S = 180

OURS = ("pystrobe", "pystrobe setprofile", "pystrobe builtins", "pystrobe, excluded")
EVERYWHERE = ("none", *OURS, "cProfile", "sys.setprofile")
PEERS = ("VizTracer", "VizTracer without C", "yappi wall", "yappi cpu", "line_profiler")
#: With all workloads, for what they tell beside fib.
OF_INTEREST = ("none", *OURS, "cProfile", "VizTracer", "yappi wall")


def tools_for(own: Own, workload: str) -> list[str]:
    names = [*EVERYWHERE, *PEERS, "pyinstrument"]
    if own.version >= (3, 15):
        names.append("profiling.tracing")
    return [name for name in names if workload == "fib" or name in OF_INTEREST]


@cache
def seen(own: Own, path: Path) -> str:
    """A file or directory of ours, where the interpreter sees it."""
    if not own.root:
        return str(path)
    copy = own.directory(path) / path.name
    shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy)
    return own.seen(copy)


def environment_of(own: Own) -> dict[str, str]:
    """With the peers that there are for it."""
    environment = own.environment()
    peers = paths.PEERS / f"tracers-{own.name}"
    parts = [environment.get("PYTHONPATH", ""), seen(own, peers) if peers.exists() else ""]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, parts))
    return environment


def run(own: Own, tool: str, workload: str, quick: bool) -> dict[str, Any]:
    units = max(1, UNITS[workload] // (10 if quick else 1))
    done = subprocess.run(
        [
            *("taskset", "-c", str(apart()[0] or 0), *own.command),
            *(seen(own, PROGRAM), tool, workload, str(units), str(REPEATS)),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment_of(own),
    )
    if done.returncode != 0:
        raise ToolError((done.stderr.strip().splitlines() or ["no message"])[-1])
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def figures(answers: list[dict[str, Any]]) -> Row:
    ratios, left, nanoseconds, told, made = [], [], [], 0, 0
    for answer in answers:
        alone, under = median(answer["before"]), median(answer["under"])
        ratios.append(under / alone)
        left.append(median(answer["after"]) / alone)
        if answer["made"]:
            nanoseconds.append(1e9 * (under - alone) / (answer["made"] / REPEATS))
            made, told = made + answer["made"], told + (answer["told"] or 0)
    row: Row = {"slow": spread(ratios), "after": spread(left), "version": answers[0]["version"]}
    if nanoseconds:
        row["ns_per_call"] = spread(nanoseconds)
    if told:
        row["told_percent"] = 100 * told / made
    return row


def turns(own: Own, workload: str, names: list[str], rounds: int) -> dict[str, list[Any]]:
    """Of each tool its answers, or the failure as the only one."""
    answers: dict[str, list[Any]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            if answers[name] and isinstance(answers[name][-1], Exception):
                continue
            try:
                answers[name].append(run(own, name, workload, rounds <= 2))
            except (ToolError, subprocess.TimeoutExpired) as failure:
                answers[name] = [failure]
    return answers


def tracers(plan: Plan) -> list[Row]:
    chosen = {one.name for one in plan.interpreters}
    rows = []
    for own in own_interpreters():
        if own.name not in chosen:
            continue
        for workload in UNITS:
            names = [
                name
                for name in tools_for(own, workload)
                if not plan.only_tools or name in plan.only_tools
            ]
            for name, answers in turns(own, workload, names, plan.rounds).items():
                row: Row = {"tool": name, "build": own.name, "workload": workload}
                if isinstance(answers[0], Exception):
                    row["failed"] = str(answers[0])
                else:
                    row |= figures(answers)
                plan.say(f"  {row}")
                rows.append(row)
    return rows
