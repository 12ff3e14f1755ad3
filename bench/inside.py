# SPDX-License-Identifier: Apache-2.0
"""What memory a program takes more for as it samples itself, by how many threads it has."""

from __future__ import annotations

import json
from functools import partial
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
