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

#: Of each workload as many units as take some 20 ms alone: the speed of the machine changes little
#: meanwhile.
UNITS = {"fib": 12, "loop": 4, "builtins": 12, "mixed": 8}
TURNS = 8  #: of one process

OURS = ("pystrobe", "pystrobe setprofile", "pystrobe builtins", "pystrobe, excluded")
SAMPLING = "pystrobe, sampling"
#: Ours without all that is not the interpreter's or the clock's.
EMPTY = (
    *("empty fast hook", "fast hook with clock", "hook of builtins with clock"),
    *("empty C hook", "C hook with clock"),
)
EVERYWHERE = ("none", *OURS, *EMPTY, "cProfile", "sys.setprofile")
PEERS = ("VizTracer", "VizTracer without C", "yappi wall", "yappi cpu", "line_profiler")
ATTACHED = "pystrobe, attach"
SAMPLERS = (ATTACHED, "py-spy", "Austin")  #: from outside
SAMPLED = ("fib", "mixed")  #: workloads
#: With all workloads, for what they tell beside fib.
OF_INTEREST = ("none", *OURS, SAMPLING, *EMPTY, "cProfile", "VizTracer", "yappi wall")

Answer = dict[str, Any]
Row = dict[str, Any]


class ToolError(Exception):
    """A tool could not do what was asked; the text says why."""


def tools_for(version: tuple[int, ...], workload: str) -> list[str]:
    names = [*EVERYWHERE, SAMPLING, *PEERS, "pyinstrument"]
    if version >= (3, 15):
        names.append("profiling.tracing")
    return [name for name in names if workload == "fib" or name in OF_INTEREST]


def samplers_for(version: tuple[int, ...], workload: str) -> list[str]:
    if workload not in SAMPLED:
        return []
    return [*SAMPLERS, "profiling.sampling"] if version >= (3, 15) else list(SAMPLERS)


@contextmanager
def program() -> Iterator[Path]:
    """The program of a run: PROGRAM TOOL WORKLOAD UNITS TURNS. It is not where the package is,
    whose own functions are no part of a trace."""
    with tempfile.TemporaryDirectory(prefix="pystrobe-bench-") as directory:
        yield Path(shutil.copy(Path(__file__).with_name("_traced.py"), directory))


def words_of(tool: str, workload: str, quick: bool) -> list[str]:
    """The arguments of program(). ``quick``: to try it, for figures that mean nothing."""
    return [tool, workload, str(UNITS[workload] // (4 if quick else 1)), str(2 if quick else TURNS)]


def answer_of(command: Sequence[str], timeout_s: float, **options: Any) -> Answer:
    """What a command prints as JSON. ``options``: of :class:`subprocess.Popen`.

    :raises ToolError: it failed; the last line of what it said.
    """
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, **options)
    if done.returncode != 0:
        raise ToolError((done.stderr.strip().splitlines() or ["no message"])[-1])
    try:  # the last line: a tool may have printed before
        answer: Answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise ToolError(f"no figures, but {done.stdout[-200:]!r}") from None
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
    """Of what program() said in several processes, each by the median of its turns: ``slow``, time
    under the tool as a multiple of that without it just before and after; ``after``, that without
    it once it was there as a multiple of that before; ``ns_per_call``, what a call takes more;
    ``told_percent`` of the calls, of the process where that is furthest from all of them."""
    ratios, left, nanoseconds, told = [], [], [], []
    for answer in answers:
        turns = [
            (under, (one + other) / 2)
            for under, one, other in zip(answer["under"], answer["alone"], answer["alone"][1:])
        ]
        ratios.append(statistics.median(under / alone for under, alone in turns))
        left.append(statistics.median(answer["alone"][1:]) / statistics.median(answer["before"]))
        if answer["calls"]:
            more = statistics.median(under - alone for under, alone in turns)
            nanoseconds.append(1e9 * more / answer["calls"])
        if answer["told"] is not None:
            told.append(100 * answer["told"] / answer["made"])
    row: Row = {"slow": spread(ratios), "after": spread(left)}
    row |= {key: answers[0][key] for key in ("version", "release", "configured", "compiler")}
    if nanoseconds:
        row["ns_per_call"] = spread(nanoseconds)
    if told:
        row["told_percent"] = max(told, key=lambda percent: abs(percent - 100))
    return row
