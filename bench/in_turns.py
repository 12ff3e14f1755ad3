# SPDX-License-Identifier: Apache-2.0
"""Programs of ours on each interpreter, a process for each run, with the tools taking turns: what
changes on the machine meanwhile changes for all of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import paths  # isort: skip
from experiments import Row
from observe import ToolError
from own_interpreters import Own
from running import apart

Answer = dict[str, Any]


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


def answer_of(own: Own, program: Sequence[str], timeout_s: float) -> Answer:
    """What a program, with its arguments, prints as JSON; pinned to one CPU."""
    done = subprocess.run(
        [*("taskset", "-c", str(apart()[0] or 0), *own.command), *program],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment_of(own),
    )
    if done.returncode != 0:
        raise ToolError((done.stderr.strip().splitlines() or ["no message"])[-1])
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
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


def figures_or_failure(answers: list[Any], figures: Callable[[list[Answer]], Row]) -> Row:
    """Of what one tool answered in all of its turns."""
    failed = isinstance(answers[0], Exception)
    return {"failed": str(answers[0])} if failed else figures(answers)
