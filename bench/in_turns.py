# SPDX-License-Identifier: Apache-2.0
"""Programs of ours on each interpreter, a process for each run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import paths  # isort: skip
from experiments import Plan, Row
from own_interpreters import Own, own_interpreters
from pystrobe.bench import _turns
from pystrobe.bench._turns import Answer
from running import apart


@cache
def seen(own: Own, path: Path) -> str:
    """A file or directory of ours, where the interpreter sees it."""
    if not own.root:
        return str(path)
    copy = own.directory(path) / path.name
    shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy)
    return own.seen(copy)


def environment_of(own: Own) -> dict[str, str]:
    """With the peers that there are for it."""
    environment = own.environment()
    peers = paths.PEERS / f"tracers-{own.name}"
    parts = [environment.get("PYTHONPATH", ""), seen(own, peers) if peers.exists() else ""]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, parts))
    return environment


def answer_of(own: Own, program: Sequence[str], timeout_s: float, *, pinned: bool = True) -> Answer:
    """What a program, with its arguments, prints as JSON; pinned to one CPU, or to none."""
    pin = ("taskset", "-c", str(apart()[0] or 0)) if pinned else ()
    return _turns.answer_of([*pin, *own.command, *program], timeout_s, env=environment_of(own))


def chosen_builds(plan: Plan) -> list[Own]:
    """Those with the package, of the interpreters asked for."""
    chosen = {one.name for one in plan.interpreters}
    return [own for own in own_interpreters() if own.name in chosen]


def chosen_tools(plan: Plan, names: Iterable[str]) -> list[str]:
    return [name for name in names if not plan.only_tools or name in plan.only_tools]


def rows_in_turns(
    plan: Plan,
    runs: Mapping[str, Callable[[], Answer]],
    figures: Callable[[list[Answer]], Row],
    **facts: Any,
) -> list[Row]:
    """A row for each tool, with what is the same for all of them."""
    rows = []
    for tool, answers in _turns.in_turns(runs, plan.rounds).items():
        rows.append({"tool": tool, **facts} | _turns.row_of(answers, figures))
        plan.say(f"  {rows[-1]}")
    return rows
