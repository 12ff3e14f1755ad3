# SPDX-License-Identifier: Apache-2.0
"""Programs of ours on each interpreter, a process for each run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import paths  # isort: skip
from own_interpreters import Own
from pystrobe.bench._turns import ToolError
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


def answer_of(own: Own, program: Sequence[str], timeout_s: float, *, pinned: bool = True) -> Answer:
    """What a program, with its arguments, prints as JSON; pinned to one CPU, or to none."""
    pin = ("taskset", "-c", str(apart()[0] or 0)) if pinned else ()
    done = subprocess.run(
        [*pin, *own.command, *program],
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
