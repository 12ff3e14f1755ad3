# SPDX-License-Identifier: Apache-2.0
"""What it costs to trace every call: our engines and other tracers, on each interpreter.

Each run is a process of its own, pinned to one CPU, that times its work before, under and after the
tracer (workloads/traced.py). Tools take turns.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from in_turns import answer_of, figures_or_failure, in_turns, seen
from observe import spread
from own_interpreters import Own, own_interpreters

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


def run(own: Own, tool: str, workload: str, quick: bool) -> dict[str, Any]:
    units = max(1, UNITS[workload] // (10 if quick else 1))
    return answer_of(own, (seen(own, PROGRAM), tool, workload, str(units), str(REPEATS)), TIMEOUT_S)


def figures(answers: list[dict[str, Any]]) -> Row:
    ratios, left, nanoseconds, told, made = [], [], [], 0, 0
    for answer in answers:
        alone, under = median(answer["before"]), median(answer["under"])
        ratios.append(under / alone)
        left.append(median(answer["after"]) / alone)
        if answer["made"]:
            nanoseconds.append(1e9 * (under - alone) / (answer["made"] / REPEATS))
            made, told = made + answer["made"], told + (answer["told"] or 0)
    row: Row = {"slow": spread(ratios), "after": spread(left)}
    row |= {key: answers[0][key] for key in ("version", "release", "configured", "compiler")}
    if nanoseconds:
        row["ns_per_call"] = spread(nanoseconds)
    if told:
        row["told_percent"] = 100 * told / made
    return row


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
            quick = plan.rounds <= 2
            runs = {name: partial(run, own, name, workload, quick) for name in names}
            for name, answers in in_turns(runs, plan.rounds).items():
                row: Row = {"tool": name, "build": own.name, "workload": workload}
                rows.append(row | figures_or_failure(answers, figures))
                plan.say(f"  {rows[-1]}")
    return rows
