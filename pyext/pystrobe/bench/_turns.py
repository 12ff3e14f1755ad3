# SPDX-License-Identifier: Apache-2.0
"""Runs of tools in turn, so that what changes on the machine meanwhile changes for all of them, and
the figures made of what they say. Times are seconds."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Of each workload as many units as take some 50 ms alone.
UNITS = {"fib": 30, "loop": 10, "builtins": 30, "mixed": 20}
REPEATS = 3

OURS = ("pystrobe", "pystrobe setprofile", "pystrobe builtins", "pystrobe, excluded")
SAMPLING = "pystrobe, sampling"
EMPTY = "empty C hook"
EVERYWHERE = ("none", *OURS, EMPTY, "cProfile", "sys.setprofile")
PEERS = ("VizTracer", "VizTracer without C", "yappi wall", "yappi cpu", "line_profiler")
#: With all workloads, for what they tell beside fib.
OF_INTEREST = ("none", *OURS, SAMPLING, EMPTY, "cProfile", "VizTracer", "yappi wall")

Answer = dict[str, Any]
Row = dict[str, Any]


class ToolError(Exception):
    """A tool could not do what was asked; the text says why."""


def tools_for(version: tuple[int, ...], workload: str) -> list[str]:
    names = [*EVERYWHERE, SAMPLING, *PEERS, "pyinstrument"]
    if version >= (3, 15):
        names.append("profiling.tracing")
    return [name for name in names if workload == "fib" or name in OF_INTEREST]


@contextmanager
def program() -> Iterator[Path]:
    """The program of a run: PROGRAM TOOL WORKLOAD UNITS REPEATS. It is not where the package is,
    whose own functions are no part of a trace."""
    with tempfile.TemporaryDirectory(prefix="pystrobe-bench-") as directory:
        yield Path(shutil.copy(Path(__file__).with_name("_traced.py"), directory))


def words_of(tool: str, workload: str, quick: bool) -> list[str]:
    """The arguments of program(). ``quick``: to try it, for figures that mean nothing."""
    return [tool, workload, str(max(1, UNITS[workload] // (10 if quick else 1))), str(REPEATS)]


def answer_of(command: Sequence[str], timeout_s: float, **options: Any) -> Answer:
    """What a command prints as JSON. ``options``: of :class:`subprocess.Popen`.

    :raises ToolError: it failed; the last line of what it said.
    """
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, **options)
    if done.returncode != 0:
        raise ToolError((done.stderr.strip().splitlines() or ["no message"])[-1])
    answer: Answer = json.loads(done.stdout)
    return answer


def in_turns(runs: Mapping[str, Callable[[], Answer]], rounds: int) -> dict[str, list[Any]]:
    """Of each tool its answers, or the failure as the only one."""
    answers: dict[str, list[Any]] = {tool: [] for tool in runs}
    for _ in range(rounds):
        for tool, run in runs.items():
            if answers[tool] and isinstance(answers[tool][-1], Exception):
                continue
            try:
                answers[tool].append(run())
            except (ToolError, subprocess.TimeoutExpired) as failure:
                answers[tool] = [failure]
    return answers


def row_of(answers: list[Any], figures: Callable[[list[Answer]], Row]) -> Row:
    """Of what one tool answered in all of its turns."""
    failed = isinstance(answers[0], Exception)
    return {"failed": str(answers[0])} if failed else figures(answers)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def figures(answers: list[Answer]) -> Row:
    """Of what program() said in several turns: ``slow`` and ``after``, the times under the tool and
    after it as multiples of those before; ``ns_per_call`` more; ``told_percent`` of the calls."""
    ratios, left, nanoseconds, told, made = [], [], [], 0, 0
    for answer in answers:
        alone, under = statistics.median(answer["before"]), statistics.median(answer["under"])
        ratios.append(under / alone)
        left.append(statistics.median(answer["after"]) / alone)
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
