# SPDX-License-Identifier: Apache-2.0
"""Programs that sample themselves."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import pytest
from own_interpreters import THIS, Own

WORK = """
import os, time

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def burn50(): spin(0.050)
def burn30(): spin(0.030)
def burn20(): spin(0.020)
def nap(): time.sleep(0.050)

def work(rounds):
    wall = dict.fromkeys(("burn50", "burn30", "burn20", "nap"), 0.0)
    for _ in range(rounds):
        for function in (burn50, burn30, burn20, nap):
            begin = time.perf_counter()
            function()
            wall[function.__name__] += time.perf_counter() - begin
    return wall

def tasks():
    # The kernel wakes who joins a thread a moment before it takes it off this list.
    end = time.monotonic() + 2
    while (count := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < end:
        time.sleep(0.001)
    return count
"""


@cache
def has_module(own: Own, name: str) -> bool:
    tried = subprocess.run(
        [*own.command, "-c", f"import {name}"], env=own.environment(), capture_output=True
    )
    return tried.returncode == 0


MODES = pytest.mark.parametrize("mode", ["cpu", "wall"])


def run(
    code: str, mode: str = "", by: Own = THIS, **options: object
) -> subprocess.CompletedProcess[str]:
    """Runs a program that has WORK, and MODE."""
    return subprocess.run(
        [*by.command, "-c", f"MODE = {mode!r}\n{WORK}{code}"],
        env=by.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )  # type: ignore[call-overload]


def answer(code: str, mode: str = "", by: Own = THIS, **options: object) -> Any:
    """What the program prints as JSON on its last line."""
    finished = run(code, mode, by, **options)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])
