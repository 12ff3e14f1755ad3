# SPDX-License-Identifier: Apache-2.0
"""What it costs a program to sample itself: memory, by how many threads it has, and time."""

from __future__ import annotations

import json
from functools import partial
from statistics import median
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from in_turns import answer_of, chosen_builds, chosen_tools, rows_in_turns, seen
from own_interpreters import Own
from pystrobe.bench._turns import spread

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
    "pyinstrument, 1,000 Hz": {"rate": 1000, "pyinstrument": True},
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
    names = chosen_tools(plan, OPTIONS)
    rows = []
    for own in chosen_builds(plan):
        for threads in THREADS:
            runs = {name: partial(run, own, name, threads) for name in names}
            rows += rows_in_turns(plan, runs, figures, build=own.name, threads=threads)
    return rows


def run_beside(own: Own, tool: str, workload: str, blocks: int) -> dict[str, Any]:
    program = f"{seen(own, WORKLOADS)}/beside.py"
    words = (program, workload, str(blocks), json.dumps(SAMPLERS[tool]))
    return answer_of(own, words, 180, pinned=False)


def figures_beside(answers: list[dict[str, Any]]) -> Row:
    return {key: spread([median(answer[key]) for answer in answers]) for key in ("cpu", "elapsed")}


def time_inside(plan: Plan) -> list[Row]:
    names = chosen_tools(plan, SAMPLERS)
    blocks = 3 if plan.quick else BLOCKS
    rows = []
    for own in chosen_builds(plan):
        for workload in ("fib", "mixed"):
            runs = {name: partial(run_beside, own, name, workload, blocks) for name in names}
            rows += rows_in_turns(plan, runs, figures_beside, build=own.name, workload=workload)
    return rows
