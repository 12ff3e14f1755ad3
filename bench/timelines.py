# SPDX-License-Identifier: Apache-2.0
"""Timelines, each call by itself: what they cost, how large the files are, and whether all calls
are there.

Each run is a process of its own (workloads/timeline.py), pinned to one CPU, that the thread which
writes ours has to share. Tools take turns.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from observe import ToolError, spread
from own_interpreters import Own, own_interpreters
from running import apart
from tracers import environment_of, seen

WORKLOADS = paths.BENCH / "workloads"
TOOLS = ("pystrobe", "VizTracer", "VizTracer with room")
#: fib(20) so often: 0.2 and 2.2 million calls.
UNITS = (10, 100)
TIMEOUT_S = 600


def run(own: Own, tool: str, units: int) -> dict[str, Any]:
    directory = own.directory(Path(mkdtemp(prefix="timeline-")))
    try:
        done = subprocess.run(
            [
                *("taskset", "-c", str(apart()[0] or 0), *own.command),
                *(f"{seen(own, WORKLOADS)}/timeline.py", tool, str(units), own.seen(directory)),
            ],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment_of(own),
        )
    finally:
        shutil.rmtree(directory)
    if done.returncode != 0:
        raise ToolError((done.stderr.strip().splitlines() or ["no message"])[-1])
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


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
    chosen = {one.name for one in plan.interpreters}
    tools = [name for name in TOOLS if not plan.only_tools or name in plan.only_tools]
    rows = []
    for own in own_interpreters():
        if own.name not in chosen:
            continue
        for units in UNITS:
            for tool, answers in turns(own, tools, units, plan.rounds).items():
                row: Row = {"tool": tool, "build": own.name}
                if isinstance(answers[0], Exception):
                    row["failed"] = str(answers[0])
                else:
                    row |= figures(answers)
                plan.say(f"  {row}")
                rows.append(row)
    return rows


def turns(own: Own, tools: list[str], units: int, rounds: int) -> dict[str, list[Any]]:
    """Of each tool its answers, or the failure as the only one."""
    answers: dict[str, list[Any]] = {tool: [] for tool in tools}
    for _ in range(rounds):
        for tool in tools:
            if answers[tool] and isinstance(answers[tool][-1], Exception):
                continue
            try:
                answers[tool].append(run(own, tool, units))
            except (ToolError, subprocess.TimeoutExpired) as failure:
                answers[tool] = [failure]
    return answers
