# SPDX-License-Identifier: Apache-2.0
"""For how long a sample holds the thread that it is of: from outside without the context switches
around it, from inside the signal handler."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import paths  # isort: skip
import tools
from experiments import Plan, Row, request, sample, target
from find import Interpreter
from in_turns import answer_of, chosen_builds, chosen_tools, rows_in_turns, seen
from own_interpreters import Own
from pystrobe.bench._turns import Answer, ToolError, spread

PROGRAM = paths.BENCH / "workloads" / "held.py"
DEPTHS = (20, 200)
RATE_HZ = 1000
OUTSIDE = {
    "pystrobe, from outside": tools.PYSTROBE,
    "pystrobe --native, from outside": tools.pystrobe("pystrobe --native", "--native"),
}
INSIDE: dict[str, dict[str, Any]] = {
    "pystrobe cpu": {"mode": "cpu"},
    "pystrobe native": {"mode": "cpu", "native": True},
    "pystrobe wall": {"mode": "wall"},
}


def run_outside(plan: Plan, interpreter: Interpreter, name: str, depth: int) -> Answer:
    # The module, main, one level more than it is told, and the busy leaf.
    with (
        target(interpreter, "deep", str(depth - 4)) as started,
        request(interpreter, started, plan.seconds, RATE_HZ) as wanted,
    ):
        _, recording = sample(OUTSIDE[name], wanted, started)
        quality = tools.quality(recording)["quality"]
    if "held_count" not in quality:
        raise ToolError("no sample held the target")
    return {
        "samples": quality["held_count"],
        "median_ns": quality["held_median_ns"],
        "p99_ns": quality["held_p99_ns"],
    }


def run_inside(plan: Plan, own: Own, name: str, depth: int) -> Answer:
    options = json.dumps({"rate": RATE_HZ, **INSIDE[name]})
    words = (seen(own, PROGRAM), options, str(depth), str(plan.seconds))
    return answer_of(own, words, 60, pinned=False)


def figures(answers: list[Answer]) -> Row:
    row: Row = {"samples": spread([answer["samples"] for answer in answers])}
    for key in ("median", "p99"):
        row[f"{key}_us"] = spread([answer[f"{key}_ns"] / 1000 for answer in answers])
    return row


def held(plan: Plan) -> list[Row]:
    rows = []
    outside, inside = chosen_tools(plan, OUTSIDE), chosen_tools(plan, INSIDE)
    builds = {own.name: own for own in chosen_builds(plan)}
    for interpreter in plan.interpreters:
        own = builds.get(interpreter.name)
        for depth in DEPTHS:
            runs = {name: partial(run_outside, plan, interpreter, name, depth) for name in outside}
            if own is not None:
                runs |= {name: partial(run_inside, plan, own, name, depth) for name in inside}
            rows += rows_in_turns(plan, runs, figures, build=interpreter.name, depth=depth)
    return rows
