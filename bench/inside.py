# SPDX-License-Identifier: Apache-2.0
"""What it costs a program to sample itself: memory, by how many threads it has, and time."""

from __future__ import annotations

import json
from functools import partial
from statistics import median
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from in_turns import answer_of, seen
from own_interpreters import Own, own_interpreters
from pystrobe.bench._turns import in_turns, row_of, spread

PROGRAM = paths.BENCH / "workloads" / "busy_threads.py"
THREADS = (1, 64)
SECONDS = 1
OPTIONS: dict[str, dict[str, Any]] = {
    "pystrobe cpu": {"mode": "cpu"},
    "pystrobe native": {"mode": "cpu", "native": True},
    "pystrobe wall": {"mode": "wall"},
}


WORKLOADS = paths.BENCH / "workloads"
BLOCKS = 20
#: None: no profiler, for what chance alone makes of the figures.
SAMPLERS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "pystrobe, 100 Hz": {"rate": 100},
    "pystrobe, 1,000 Hz": {"rate": 1000},
    "pystrobe native, 1,000 Hz": {"rate": 1000, "native": True},
    "pystrobe wall, 1,000 Hz": {"rate": 1000, "mode": "wall"},
}


def run(own: Own, tool: str, threads: int) -> dict[str, Any]:
    options = json.dumps(OPTIONS[tool])
    return answer_of(own, (seen(own, PROGRAM), options, str(threads), str(SECONDS)), 60)


def figures(answers: list[dict[str, Any]]) -> Row:
    return {
        f"{when}_mb": spread([answer[f"{when}_kb"] / 1024 for answer in answers])
        for when in ("sampling", "peak", "left")
    }


def memory_inside(plan: Plan) -> list[Row]:
    chosen = {one.name for one in plan.interpreters}
    names = [name for name in OPTIONS if not plan.only_tools or name in plan.only_tools]
    rows = []
    for own in own_interpreters():
        if own.name not in chosen:
            continue
        for threads in THREADS:
            runs = {name: partial(run, own, name, threads) for name in names}
            for name, answers in in_turns(runs, plan.rounds).items():
                row: Row = {
                    "tool": name,
                    "python": ".".join(map(str, own.version)),
                    "build": own.name,
                    "threads": threads,
                }
                rows.append(row | row_of(answers, figures))
                plan.say(f"  {rows[-1]}")
    return rows


def run_beside(own: Own, tool: str, workload: str, blocks: int) -> dict[str, Any]:
    program = f"{seen(own, WORKLOADS)}/beside.py"
    words = (program, workload, str(blocks), json.dumps(SAMPLERS[tool]))
    return answer_of(own, words, 180, pinned=False)


def figures_beside(answers: list[dict[str, Any]]) -> Row:
    return {key: spread([median(answer[key]) for answer in answers]) for key in ("cpu", "elapsed")}


def time_inside(plan: Plan) -> list[Row]:
    chosen = {one.name for one in plan.interpreters}
    names = [name for name in SAMPLERS if not plan.only_tools or name in plan.only_tools]
    blocks = 3 if plan.rounds <= 2 else BLOCKS
    rows = []
    for own in own_interpreters():
        if own.name not in chosen:
            continue
        for workload in ("fib", "mixed"):
            runs = {name: partial(run_beside, own, name, workload, blocks) for name in names}
            for name, answers in in_turns(runs, plan.rounds).items():
                row: Row = {"tool": name, "build": own.name, "workload": workload}
                rows.append(row | row_of(answers, figures_beside))
                plan.say(f"  {rows[-1]}")
    return rows
