# SPDX-License-Identifier: Apache-2.0
"""Timelines, each call by itself: what they cost, how large the files are, and whether all calls
are there.

Each run is a process of its own (workloads/timeline.py), pinned to one CPU, that the thread which
writes ours has to share. Tools take turns.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from in_turns import answer_of, chosen_builds, chosen_tools, rows_in_turns, seen
from own_interpreters import Own
from pystrobe.bench._turns import program, spread

PROGRAM = paths.BENCH / "workloads" / "timeline.py"
TOOLS = ("pystrobe", "pystrobe, sums", "VizTracer", "VizTracer with room")
#: fib(20) so often: 0.2 and 2.2 million calls.
UNITS = (10, 100)
TIMEOUT_S = 600


def run(own: Own, programs: Path, tool: str, units: int) -> dict[str, Any]:
    directory = own.directory(Path(mkdtemp(prefix="timeline-")))
    words = (f"{seen(own, programs)}/{PROGRAM.name}", tool, str(units), own.seen(directory))
    try:
        return answer_of(own, words, TIMEOUT_S)
    finally:
        shutil.rmtree(directory)


def figures(answers: list[dict[str, Any]]) -> Row:
    made = answers[0]["made"]
    of_formats = answers[0]["bytes"]
    return {
        "version": answers[0]["version"],
        "calls": made,
        "slow": spread([one["under"] / one["before"] for one in answers]),
        "ns_per_call": spread([1e9 * (one["under"] - one["before"]) / made for one in answers]),
        "kept_percent": min(100 * one["kept"] / made for one in answers),
        # A file of what was kept, by the calls in it.
        "bytes_per_call": {
            form: median(one["bytes"][form] / max(1, one["kept"]) for one in answers)
            for form in of_formats
        },
        "save_s": {form: median(one["save"][form] for one in answers) for form in of_formats},
    }


def timelines(plan: Plan) -> list[Row]:
    with program() as traced:  # whose workload ours imports
        shutil.copy(PROGRAM, traced.parent)
        return rows_of(plan, traced.parent)


def rows_of(plan: Plan, programs: Path) -> list[Row]:
    tools = chosen_tools(plan, TOOLS)
    rows = []
    for own in chosen_builds(plan):
        for units in UNITS[:1] if plan.quick else UNITS:
            runs = {tool: partial(run, own, programs, tool, units) for tool in tools}
            rows += rows_in_turns(plan, runs, figures, build=own.name)
    return rows
