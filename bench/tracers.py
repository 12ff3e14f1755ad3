# SPDX-License-Identifier: Apache-2.0
"""What it costs to trace every call: our engines and other tracers, on each interpreter.

What `pystrobe bench` measures, here on interpreters in other roots too, with peers from elsewhere.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import paths  # noqa: F401  # isort: skip
from experiments import Plan, Row
from in_turns import answer_of, seen
from own_interpreters import Own, own_interpreters
from pystrobe.bench._turns import UNITS, figures, in_turns, program, row_of, tools_for, words_of

TIMEOUT_S = 180


def run(own: Own, copy: Path, tool: str, workload: str, quick: bool) -> dict[str, Any]:
    return answer_of(own, (seen(own, copy), *words_of(tool, workload, quick)), TIMEOUT_S)


def tracers(plan: Plan) -> list[Row]:
    with program() as copy:
        return rows_of(plan, copy)


def rows_of(plan: Plan, copy: Path) -> list[Row]:
    chosen = {one.name for one in plan.interpreters}
    rows = []
    for own in own_interpreters():
        if own.name not in chosen:
            continue
        for workload in UNITS:
            names = [
                name
                for name in tools_for(own.version, workload)
                if not plan.only_tools or name in plan.only_tools
            ]
            quick = plan.rounds <= 2
            runs = {name: partial(run, own, copy, name, workload, quick) for name in names}
            for name, answers in in_turns(runs, plan.rounds).items():
                row: Row = {"tool": name, "build": own.name, "workload": workload}
                rows.append(row | row_of(answers, figures))
                plan.say(f"  {rows[-1]}")
    return rows
