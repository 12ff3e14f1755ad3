# SPDX-License-Identifier: Apache-2.0
"""What it costs to trace every call: our engines and other tracers, on each interpreter.

What `pystrobe bench` measures, here on interpreters in other roots too, with peers from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import paths  # noqa: F401  # isort: skip
from experiments import Plan, Row
from in_turns import answer_of, chosen_builds, chosen_tools, rows_in_turns, seen
from own_interpreters import Own
from pystrobe.bench._turns import EMPTY, OURS, UNITS, figures, program, tools_for, words_of

TIMEOUT_S = 180
#: Of an interpreter's version and a workload.
ToolsFor = Callable[[tuple[int, ...], str], list[str]]


def run(own: Own, copy: Path, tool: str, workload: str, quick: bool) -> dict[str, Any]:
    return answer_of(own, (seen(own, copy), *words_of(tool, workload, quick)), TIMEOUT_S)


def tracers(plan: Plan) -> list[Row]:
    with program() as copy:
        return rows_of(plan, copy, tools_for)


def floors(plan: Plan) -> list[Row]:
    """Ours beside hooks that do nothing, or read the clock and do no more: what is theirs of it."""
    with program() as copy:
        return rows_of(plan, copy, lambda *_: ["none", *OURS, *EMPTY])


def rows_of(plan: Plan, copy: Path, tools: ToolsFor) -> list[Row]:
    rows = []
    for own in chosen_builds(plan):
        for workload in UNITS:
            names = chosen_tools(plan, tools(own.version, workload))
            runs = {name: partial(run, own, copy, name, workload, plan.quick) for name in names}
            rows += rows_in_turns(plan, runs, figures, build=own.name, workload=workload)
    return rows
