# SPDX-License-Identifier: Apache-2.0
"""A debugger stops where it was told to, and what is traced and sampled is told as ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from debug_adapter import TIMEOUT_S, debugged
from own_interpreters import THIS, Own, own_interpreters
from own_program import has_module

SCRIPT = """
import json, time
import pystrobe
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def stopped_in():
    rounds = 1
    return fib(15)  # line 8: the breakpoint
with pystrobe.Tracer() as tracer:
    stopped_in()
    stopped_in()
calls = tracer.call_counts()
with pystrobe.Profiler(rate=1000) as profiler:
    end = time.thread_time() + 0.3
    stopped_in()
    while time.thread_time() < end:
        fib(15)
names = [row.name for row in profiler.profile.top(20)]
print(json.dumps([calls, "fib" in names]))
"""
LINE = 8
CALLS_OF_FIB = 1973  # fib(15), once


@pytest.mark.parametrize(
    "by",
    # Of the tests themselves it is a requirement.
    [own for own in own_interpreters() if own is THIS or has_module(own, "debugpy")],
    ids=lambda by: by.name,
)
def test_breakpoints_stop_and_calls_are_counted(by: Own, tmp_path: Path) -> None:
    directory = by.directory(tmp_path)
    script = directory / "debugged.py"
    script.write_text(SCRIPT)
    with debugged(by, script, tmp_path / "output") as (debugger, process):
        stops = debugger.run(Path(by.seen(script)), LINE)
        assert process.wait(TIMEOUT_S) == 0, (tmp_path / "output").read_text()
    assert stops == 3
    calls, is_sampled = json.loads((tmp_path / "output").read_text().splitlines()[-1])
    assert calls["4:fib"] == 2 * CALLS_OF_FIB
    assert calls["6:stopped_in"] == 2
    assert is_sampled
