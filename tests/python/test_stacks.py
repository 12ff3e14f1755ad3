# SPDX-License-Identifier: Apache-2.0
"""No stack that cannot be: every target, on every interpreter, at both rates, pinned and not."""

from __future__ import annotations

import pytest
from cases import ALL, CALL_HEAVY, Case
from conftest import newest_interpreter, oracle_of
from find import Interpreter
from oracle import bias_points, depth_shares
from pystrobe_command import Pystrobe, Recorded
from running import apart, running

PINNED = pytest.mark.parametrize("pinned", [True, False], ids=["apart", "unpinned"])
RATES = pytest.mark.parametrize("rate", [1000, 10000])


def record(
    pystrobe: Pystrobe,
    interpreter: Interpreter,
    case: Case,
    rate: float,
    pinned: bool,
    seconds: float,
    *options: str,
) -> Recorded:
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    target_cpu, sampler_cpu = apart() if pinned else (None, None)
    with running(interpreter, case.target, *case.arguments, cpu=target_cpu) as target:
        recorded = pystrobe.attach(
            target.pid, *options, seconds=seconds, rate=rate, cpu=sampler_cpu
        )
        assert target.alive()
    return recorded


def check_possible(interpreter: Interpreter, case: Case, recorded: Recorded) -> None:
    oracle = oracle_of(case.target, interpreter)
    verdict = oracle.judge(recorded.collapsed("--idle"))
    quality = recorded.json()["quality"]
    assert not verdict.impossible, f"{verdict.describe()}\n{quality['line']}"
    assert verdict.total > 50
    assert quality["unresolved"] == 0, quality["line"]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_every_stack_is_possible(pystrobe: Pystrobe, interpreter: Interpreter, case: Case) -> None:
    recorded = record(pystrobe, interpreter, case, 1000, pinned=True, seconds=0.5)
    check_possible(interpreter, case, recorded)


@PINNED
@RATES
@pytest.mark.parametrize("case", CALL_HEAVY, ids=lambda case: case.name)
def test_every_stack_is_possible_at_any_rate(
    pystrobe: Pystrobe, case: Case, rate: float, pinned: bool
) -> None:
    newest = newest_interpreter()
    recorded = record(pystrobe, newest, case, rate, pinned, seconds=0.5)
    check_possible(newest, case, recorded)


@pytest.mark.matrix
@PINNED
@RATES
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_every_stack_is_possible_everywhere(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case, rate: float, pinned: bool
) -> None:
    recorded = record(pystrobe, interpreter, case, rate, pinned, seconds=1)
    check_possible(interpreter, case, recorded)


def test_every_stack_is_possible_with_ptrace(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    case = Case("tower")
    recorded = record(pystrobe, interpreter, case, 1000, True, 0.5, "--pause", "ptrace")
    assert recorded.json()["metadata"]["pause_mode"] == "ptrace"
    check_possible(interpreter, case, recorded)


def test_stacks_without_pause_are_marked(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    recorded = record(pystrobe, interpreter, Case("tower"), 1000, True, 0.5, "--pause", "none")
    quality = recorded.json()["quality"]
    assert quality["proved"] == 0
    assert quality["marked"] == quality["taken"] > 50


@PINNED
def test_depths_are_unbiased(pystrobe: Pystrobe, interpreter: Interpreter, pinned: bool) -> None:
    """Tools that drop or prefer what is quick to read are off by 18 points here."""
    target_cpu, sampler_cpu = apart() if pinned else (None, None)
    with running(interpreter, "tower", "--truth", cpu=target_cpu) as target:
        truth = target.ready["shares"]
        recorded = pystrobe.attach(target.pid, seconds=1.5, rate=2000, cpu=sampler_cpu)
    # By CPU time: while the target waits for a processor it stays where it is.
    shares = depth_shares(recorded.collapsed("--mode", "cpu", "--unit", "ns"), depth=7)
    assert bias_points(shares, truth) < 9, (shares, truth)
    levels = shares[1:8]
    assert max(levels) - min(levels) < 0.07, shares
