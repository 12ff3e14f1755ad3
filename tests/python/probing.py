# SPDX-License-Identifier: Apache-2.0
"""Runs target_probe, the program that opens a process as a target and tells what it found."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
#: Values of ErrorCode, profiler/base/error.h, by the names used there.
NOT_FOUND, PERMISSION, NOT_PYTHON, UNSUPPORTED, UNREADABLE, EXITED = 1, 2, 3, 4, 5, 6


def probe_path() -> Path:
    """TARGET_PROBE of the environment, else the newest build."""
    if named := os.environ.get("TARGET_PROBE"):
        return Path(named).resolve()
    built = list(REPOSITORY.glob("build/*/tests/cpp/target_probe"))
    if not built:
        pytest.fail("no target_probe: build the C++ tests, or name it in TARGET_PROBE")
    return max(built, key=lambda path: path.stat().st_mtime)


def probe(pid: int, **options: Any) -> dict[str, Any]:
    """What it says of a process: facts, or `error`, `message` and `hint`."""
    finished = subprocess.run(
        [str(probe_path()), str(pid)], capture_output=True, text=True, timeout=60, **options
    )
    assert finished.returncode in (0, 1), finished
    return dict(json.loads(finished.stdout))


def found(pid: int) -> dict[str, Any]:
    """The facts; an error fails the test."""
    seen = probe(pid)
    assert "error" not in seen, seen
    return seen


def ids(seen: dict[str, Any], main_only: bool = False) -> list[int]:
    """Thread ids, ascending."""
    return sorted(
        thread["tid"] for thread in seen["threads"] if not main_only or thread["interpreter"] == 0
    )


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for something that the test cannot be told of."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
