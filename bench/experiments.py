# SPDX-License-Identifier: Apache-2.0
"""What all experiments share: the plan of a bench run, and a target with a tool on it."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import paths  # noqa: F401  # isort: skip
import tools
from find import Interpreter
from observe import Observation, observe, recorded
from pystrobe.bench._turns import ToolError
from running import Running, apart, running, visible_directory

Row = dict[str, Any]


@dataclass
class Plan:
    """Which interpreters and tools, how long, how often."""

    interpreters: list[Interpreter]
    chosen: list[tools.Tool]
    only_tools: frozenset[str] = frozenset()  #: by name; none: all
    seconds: int = 3
    rounds: int = 5
    memory_seconds: int = 60
    peers_on: frozenset[str] = frozenset()  #: builds on which pairs_on_all() has peers too
    quick: bool = False  #: only the harness is tried
    say: Callable[[str], None] = field(default=print)

    def at_least(self, seconds: int) -> int:
        """Of a recording that needs so long."""
        return self.seconds if self.quick else max(self.seconds, seconds)

    def pairs(self) -> Iterator[tuple[Interpreter, tools.Tool]]:
        for interpreter in self.interpreters:
            for tool in self.chosen:
                if tool.supports(interpreter):
                    yield interpreter, tool

    def pairs_on_all(
        self, among: Sequence[tools.Tool] = tools.ALL
    ) -> Iterator[tuple[Interpreter, tools.Tool]]:
        """Ours on every interpreter; of the peers, and of our own other ways, those `among` or
        asked for by name, and only on a few: all pairs would take too long."""
        for interpreter, tool in self.pairs():
            wanted = tool in among or tool.name in self.only_tools
            if tool is tools.PYSTROBE or (wanted and interpreter.name in self.peers_on):
                yield interpreter, tool


@contextmanager
def target(
    interpreter: Interpreter, name: str, *arguments: str, pinned: bool = True
) -> Iterator[Running]:
    cpu = apart()[0] if pinned else None
    with running(interpreter, name, *arguments, cpu=cpu) as started:
        yield started


@contextmanager
def request(
    interpreter: Interpreter, started: Running, seconds: int, rate: float, **options: bool
) -> Iterator[tools.Request]:
    """A request whose files are gone afterwards."""
    directory = visible_directory(interpreter)
    try:
        yield tools.Request(
            interpreter, started.pid, seconds, rate, directory / "recording", **options
        )
    finally:
        shutil.rmtree(directory)


def sample(
    tool: tools.Tool, wanted: tools.Request, started: Running, pinned: bool = True
) -> tuple[Observation, tools.Recording]:
    seen = observe(tool, wanted, started, apart()[1] if pinned else None)
    return seen, recorded(tool, wanted)


def base_row(interpreter: Interpreter, tool: tools.Tool) -> Row:
    return {"tool": tool.name, "python": interpreter.version, "build": interpreter.name}


def attempt(plan: Plan, row: Row, measure: Callable[..., Row], *arguments: Any) -> Row:
    """The row with what measure(*arguments) brought, or with the failure, whatever it is: hours of
    other rows are not lost for one."""
    try:
        row |= measure(*arguments)
    except ToolError as failure:
        row["failed"] = str(failure)
    except Exception as failure:
        traceback.print_exc()
        row["failed"] = f"{type(failure).__name__}: {failure}"
    plan.say("  " + "  ".join(f"{key}={brief(value)}" for key, value in row.items()))
    return row


def brief(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "{" + " ".join(f"{key}={brief(part)}" for key, part in value.items()) + "}"
    return str(value)


def cost(seen: Observation, samples: int) -> Row:
    """What the tool used."""
    return {
        "cpu_percent": 100 * seen.cpu_s / seen.wall_s,
        "cpu_us_per_sample": 1e6 * seen.cpu_s / samples,
        "max_rss_mb": seen.max_rss_kb / 1024,
        "slow": seen.slow,
        "run_delay_percent": 100 * seen.run_delay,
    }
