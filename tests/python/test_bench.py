# SPDX-License-Identifier: Apache-2.0
"""``pystrobe bench``: what it measures, and what it says of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from find import Interpreter
from on_terminal import OnTerminal
from own_interpreters import Own, own_interpreters
from own_program import answer
from pystrobe_command import Finished, Pystrobe

QUICK = ("bench", "--quick", "--rounds", "1")
OURS = {
    *("pystrobe", "pystrobe setprofile", "pystrobe builtins"),
    *("pystrobe, excluded", "pystrobe, sampling"),
}
ATTACHED = "pystrobe, attach"  # with some workloads


def rows_of(pystrobe: Pystrobe, output: Path, *options: str) -> dict[str, dict[str, Any]]:
    pystrobe.succeed(*QUICK, "--workloads", "fib", "-o", str(output), *options)
    document = json.loads(output.read_text())
    assert document["machine"]["cpus"] == len(os.sched_getaffinity(0))
    return {row["tool"]: row for row in document["rows"]}


def test_each_engine_is_measured_beside_others(pystrobe: Pystrobe, tmp_path: Path) -> None:
    peers = (
        *("cProfile", "sys.setprofile", "empty C hook", "C hook with clock"),
        *("empty fast hook", "fast hook with clock", "hook of builtins with clock"),
    )
    page = tmp_path / "cost.html"
    others = ("--peers", ",".join(peers), "-o", str(page))
    rows = rows_of(pystrobe, tmp_path / "cost.json", *others)
    assert "pystrobe setprofile" in page.read_text()
    assert set(rows) == {*OURS, ATTACHED, "none", *peers}
    assert not [row for row in rows.values() if "failed" in row]
    for tool in ("pystrobe", "pystrobe setprofile", "cProfile"):
        assert rows[tool]["told_percent"] == 100, tool
        assert {"slow", "after", "ns_per_call"} <= set(rows[tool]), tool
    assert "told_percent" not in rows["none"]
    # The others' hooks, of Python and of C, are called: each call takes longer.
    for tool in ("sys.setprofile", "empty C hook", "C hook with clock"):
        assert rows[tool]["ns_per_call"]["median"] > 0, tool


@pytest.mark.parametrize("reads_clock", [False, True], ids=["empty", "clock"])
@pytest.mark.parametrize("own", own_interpreters(), ids=lambda own: own.name)
def test_the_fast_hook_is_set_while_it_is_measured(own: Own, reads_clock: bool) -> None:
    said = answer(
        f"READS_CLOCK = {reads_clock}"
        """
import ctypes, json, sys
from pystrobe import _core
def hooks():
    if hasattr(sys, "monitoring"):
        return [sys.monitoring.get_events(3) != 0, sys.monitoring.get_tool(3)]
    api = ctypes.pythonapi
    get, interpreter = api._PyInterpreterState_GetEvalFrameFunc, api.PyInterpreterState_Get
    get.restype = interpreter.restype = ctypes.c_void_p
    get.argtypes = [ctypes.c_void_p]
    own = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    return [get(interpreter()) != own, None]
before = hooks()
_core._set_empty_hooks(fast=True, reads_clock=READS_CLOCK)
during = hooks()
_core._remove_empty_hooks()
print(json.dumps([before, during, hooks()]))
""",
        by=own,
    )
    has_monitoring = own.version >= (3, 12)
    before, during, after = said
    assert (before[0], during[0], after[0]) == (False, True, False)
    assert during[1] == ("pystrobe" if has_monitoring else None)


@pytest.mark.parametrize(
    "own", [own for own in own_interpreters() if own.version >= (3, 12)], ids=lambda own: own.name
)
def test_the_hook_of_builtins_is_told_of_them(own: Own) -> None:
    said = answer(
        """
import json, sys
from pystrobe import _core
events = sys.monitoring.events
told = []
for builtins in (False, True):
    _core._set_empty_hooks(fast=True, builtins=builtins, reads_clock=True)
    told.append(sys.monitoring.get_events(3) & events.CALL != 0)
    try:
        _core._set_empty_hooks(fast=False)
    except Exception as error:
        told.append(str(error))
    _core._remove_empty_hooks()
print(json.dumps(told))
""",
        by=own,
    )
    refused = "there are empty hooks already: sys.monitoring\nRemove them first."
    assert said == [False, refused, True, refused]


def test_the_table_and_the_page_say_the_same(pystrobe: Pystrobe, tmp_path: Path) -> None:
    page = tmp_path / "cost.html"
    finished = pystrobe.succeed(
        *QUICK, "--workloads", "loop,fib", "--peers", "cProfile", "-o", str(page)
    )
    html = page.read_text()
    assert "http" not in html
    assert finished.out.count(" fib: naive recursion") == 1
    assert html.count(" fib: naive recursion") == 1
    assert "a loop without calls" in html
    for row in finished.out.splitlines():
        cells = row.split()
        if "cProfile" in cells:
            assert f">{cells[0]}</td>" in html
    assert "these figures mean nothing" in finished.out
    assert str(page) in finished.err


def test_progress_is_told_on_a_terminal_alone(pystrobe: Pystrobe) -> None:
    options = (*QUICK, "--peers", "none", "--workloads", "loop")
    terminal = OnTerminal(str(pystrobe.executable), *options)
    assert terminal.finish() == 0
    runs = re.findall(r"\r\033\[K  run (\d+) of (\d+): (none|pystrobe[^,\r]*)", terminal.text)
    assert [int(number) for number, _, _ in runs] == list(range(1, int(runs[0][1]) + 1))
    assert {tool for _, _, tool in runs} >= {"none", "pystrobe"}
    assert re.search(r"\r\033\[K(virtual )?machine with", terminal.text), "the last is cleared"
    told, quiet = pystrobe.succeed(*options), pystrobe.succeed(*options, "--quiet")
    assert re.fullmatch(r"Python .*, loop: \d+ profilers \.\.\.\n", told.err)
    assert quiet.err == ""
    assert quiet.out.splitlines()[2] == told.out.splitlines()[2]


def test_a_peer_that_is_missing_is_told_as_failed(pystrobe: Pystrobe, tmp_path: Path) -> None:
    rows = rows_of(pystrobe, tmp_path / "cost.json", "--peers", "yappi wall")
    assert set(rows) == {*OURS, ATTACHED, "none", "yappi wall"}
    assert "not installed" in rows["yappi wall"]["failed"]


def without_the_package(newest: Interpreter) -> str:
    return newest.command()[0]


def test_an_interpreter_without_the_package(pystrobe: Pystrobe, newest: Interpreter) -> None:
    finished = pystrobe.run(
        *(*QUICK, "--workloads", "loop", "--peers", "none"),
        *("--pythons", without_the_package(newest)),
    )
    assert finished.code == 1
    assert finished.out.count("failed") == len(OURS), finished
    assert "not installed for" in finished.out


def test_it_needs_the_package_itself(
    pystrobe: Pystrobe, newest: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSTROBE_PYTHON", without_the_package(newest))
    finished = pystrobe.run("bench", "--help")
    assert finished.code == 1
    assert "No module named 'pystrobe'" in finished.err
    assert "PYSTROBE_PYTHON" in finished.err


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (["--workloads", "fib,what"], "'what'"),
        (["--peers", "what"], "'what'"),
        (["--rounds", "0"], "--rounds 0"),
        (["--pythons", "3.99"], "'3.99'"),
        (["--pythons", "/bin/true"], "/bin/true"),
        (["-o", "cost.png"], "cost.png"),
        (["-o", "nowhere/cost.html"], "nowhere"),
        (["-o", "there.html"], "exists already"),
    ],
)
def test_wrong_usage(
    pystrobe: Pystrobe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    seen: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.html").touch()
    finished: Finished = pystrobe.run("bench", *options)
    assert finished.code == 2, finished
    what, cure = finished.err.splitlines()
    assert what.startswith("pystrobe: ")
    assert seen in what
    assert cure.startswith("  ")
    assert finished.out == ""


def test_help_tells_how(pystrobe: Pystrobe) -> None:
    finished = pystrobe.succeed("help", "bench")
    assert finished.out.startswith("usage: pystrobe bench")
    assert "--pythons" in finished.out
    assert max(map(len, finished.out.splitlines())) <= 80
