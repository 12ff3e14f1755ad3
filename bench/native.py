# SPDX-License-Identifier: Apache-2.0
"""Experiments on C functions of another process, sampled from outside."""

from __future__ import annotations

import re

import paths  # noqa: F401  # isort: skip
import tools
from experiments import Plan, Row, attempt, base_row, cost, request, sample, target
from find import Interpreter

TOOLS = [
    tools.pystrobe("pystrobe --native", "--native"),
    tools.pyspy("py-spy --native", "--native"),
]
TARGETS = ["fib", "callbacks", "native"]


def native(plan: Plan) -> list[Row]:
    """Python alone, calls through C and back, and two threads of which one works in C."""
    rows = []
    for interpreter in plan.interpreters:
        for name in TARGETS:
            for rate in (100.0, 1000.0):
                for tool in (tool for tool in TOOLS if tool.supports(interpreter)):
                    row = base_row(interpreter, tool) | {"target": name, "asked": rate}
                    rows.append(attempt(plan, row, one, plan, interpreter, tool, name, rate))
    return rows


def one(plan: Plan, interpreter: Interpreter, tool: tools.Tool, name: str, rate: float) -> Row:
    pinned = name != "native"  # it needs a CPU for each of its threads
    with target(interpreter, name, pinned=pinned) as started:
        with request(interpreter, started, 2 * plan.seconds, rate, cpu_time=True) as wanted:
            seen, recording = sample(tool, wanted, started, pinned=pinned)
            quality = tools.quality(recording)
        truth = started.stop() if name == "native" else {}
    samples = sum(stack.samples for stack in recording.stacks)
    row: Row = {"delivered": samples / seen.recording_s, "errors": errors(seen.said, quality)}
    if truth:
        used = truth["used"]
        found = {name: time_in(recording, name) for name in used}
        row["digest_percent"] = 100 * found["digest"] / (sum(found.values()) or 1)
        row["digest_truth_percent"] = 100 * used["digest"] / sum(used.values())
    return row | cost(seen, samples) | quality


def time_in(recording: tools.Recording, function: str) -> int:
    return sum(
        stack.samples
        for stack in recording.weighted
        if function in {frame.name for frame in stack.frames}
    )


def errors(said: str, quality: Row) -> int:
    """Samples that a tool gives up, or cannot merge, by its own count."""
    if quality:
        own = quality["quality"]
        return int(own["lost"] + own["native_unfit"])
    found = re.findall(r"Errors: (\d+)", said)
    return int(found[-1]) if found else 0
