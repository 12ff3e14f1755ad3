# SPDX-License-Identifier: Apache-2.0
"""No stack that cannot be: every target, on every interpreter, at both rates, pinned and not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt

import pytest
from cases import ALL, CALL_HEAVY, Case
from conftest import oracle_of
from find import Interpreter
from oracle import depth_shares, unevenness
from pystrobe_command import Pystrobe
from running import Running, apart, running

PINNED = pytest.mark.parametrize("pinned", [True, False], ids=["apart", "unpinned"])
RATES = pytest.mark.parametrize("rate", [1000, 10000])


ENOUGH = 200  # samples; on a busy machine it takes more than one run to get them
MOST_RUNS = 6


@contextmanager
def target_of(
    interpreter: Interpreter, case: Case, pinned: bool
) -> Iterator[tuple[Running, int | None]]:
    """The target at work, and the CPU that is left for the sampler."""
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    target_cpu, sampler_cpu = apart() if pinned else (None, None)
    with running(interpreter, case.target, *case.arguments, cpu=target_cpu) as target:
        yield target, sampler_cpu
        assert target.alive()


def check_possible(
    pystrobe: Pystrobe,
    interpreter: Interpreter,
    case: Case,
    rate: float,
    pinned: bool,
    *options: str,
) -> None:
    """Samples until there is enough to judge; not one stack may be impossible."""
    oracle = oracle_of(case.target, interpreter)
    judged = 0
    with target_of(interpreter, case, pinned) as (target, cpu):
        for _ in range(MOST_RUNS):
            recorded = pystrobe.attach(target.pid, *options, seconds=0.5, rate=rate, cpu=cpu)
            verdict = oracle.judge(recorded.collapsed("--idle"))
            quality = recorded.json()["quality"]
            assert not verdict.impossible, f"{verdict.describe()}\n{quality['line']}"
            assert quality["taken"] + quality["lost"] == quality["deadlines"]
            judged += verdict.total
            if judged >= ENOUGH:
                return
    pytest.fail(f"only {judged} samples: {quality['line']}")


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_every_stack_is_possible(pystrobe: Pystrobe, interpreter: Interpreter, case: Case) -> None:
    check_possible(pystrobe, interpreter, case, rate=1000, pinned=True)


@PINNED
@RATES
@pytest.mark.parametrize("case", CALL_HEAVY, ids=lambda case: case.name)
def test_every_stack_is_possible_at_any_rate(
    pystrobe: Pystrobe, newest: Interpreter, case: Case, rate: float, pinned: bool
) -> None:
    check_possible(pystrobe, newest, case, rate, pinned)


def test_the_entry_of_the_evaluation_loop_is_no_stack(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """C code that calls Python back spends a share of its time just there."""
    check_possible(pystrobe, interpreter, Case("wrappers"), rate=10000, pinned=False)


@pytest.mark.matrix
@PINNED
@RATES
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_every_stack_is_possible_everywhere(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case, rate: float, pinned: bool
) -> None:
    check_possible(pystrobe, interpreter, case, rate, pinned)


def test_every_stack_is_possible_with_ptrace(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    check_possible(pystrobe, interpreter, Case("tower"), 1000, True, "--pause", "ptrace")


@pytest.mark.parametrize("pause", ["preempt", "ptrace", "none"])
def test_what_was_asked_for_is_what_is_told(
    pystrobe: Pystrobe, newest: Interpreter, pause: str
) -> None:
    with target_of(newest, Case("tower"), pinned=True) as (target, cpu):
        recorded = pystrobe.attach(target.pid, "--pause", pause, seconds=1, cpu=cpu)
    report = recorded.json()
    quality = report["quality"]
    assert report["metadata"]["pause_mode"] == pause
    assert quality["taken"] > 0
    if pause == "none":
        assert quality["proved"] == 0
        assert quality["marked"] == quality["taken"]
    else:
        assert quality["proved"] > 0.9 * quality["taken"]


@PINNED
def test_depths_are_unbiased(pystrobe: Pystrobe, interpreter: Interpreter, pinned: bool) -> None:
    """Tools that drop or prefer what is quick to read are off by 18 points here."""
    stacks, samples = [], 0
    with target_of(interpreter, Case("tower", ("--truth",)), pinned) as (target, cpu):
        truth = target.ready["shares"]
        for _ in range(MOST_RUNS):
            recorded = pystrobe.attach(target.pid, seconds=1, rate=2000, cpu=cpu)
            # Only where it ran: while the target waits for a processor it stays where it is.
            stacks += recorded.collapsed("--mode", "cpu")
            samples += recorded.json()["total"]["cpu_samples"]
            if samples >= 2000:
                break
    outside, *levels, lowest = depth_shares(stacks, depth=7)
    even = [sum(levels) / len(levels)] * len(levels)
    # Chance alone gives about 100 / sqrt(samples) points.
    assert unevenness(levels, even) < 3 + 150 / sqrt(samples), levels
    # Timing empty towers tells this part only roughly.
    assert abs(outside + lowest - truth[0] - truth[-1]) < 0.15, (outside, lowest, truth)
