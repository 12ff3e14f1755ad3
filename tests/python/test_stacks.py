# SPDX-License-Identifier: Apache-2.0
"""No stack that cannot be: every target, on every interpreter, at every rate, pinned and not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt

import pytest
from cases import ALL, CALL_HEAVY, Case
from conftest import oracle_of
from find import Interpreter
from oracle import INCOMPLETE, depth_shares, unevenness
from probing import until
from pystrobe_command import Finished, Pystrobe, Recorded
from running import Running, apart, running

PINNED = pytest.mark.parametrize("pinned", [True, False], ids=["apart", "unpinned"])
# Copies are made beside the target, ahead of their time, and as fast as can be.
RATES = pytest.mark.parametrize("rate", [200, 1000, 10000])
# Without what test_every_stack_is_possible does: 1000 Hz, apart. All of them are in the matrix.
OTHER_WAYS = [(200, True), (1000, False), (10000, False)]
OF_SOME = [(200, False), (10000, True)]
# What is on every interpreter; others on one of each layout.
OFTEN = ("tower", "awaits", "deep-200-moving", "generators", "recursion")

ENOUGH = 200  # samples; on a busy machine it takes more than one run to get them
MOST_RUNS = 6


@contextmanager
def target_of(
    interpreter: Interpreter,
    case: Case,
    pinned: bool,
    environment: dict[str, str] | None = None,
) -> Iterator[tuple[Running, int | None]]:
    """The target at work, and the CPU that is left for the sampler."""
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    target_cpu, sampler_cpu = apart() if pinned else (None, None)
    with running(
        interpreter, case.target, *case.arguments, cpu=target_cpu, environment=environment
    ) as target:
        yield target, sampler_cpu
        assert target.alive()


def check_possible(
    pystrobe: Pystrobe,
    interpreter: Interpreter,
    case: Case,
    rate: float,
    pinned: bool,
    *options: str,
    seconds: float = 0.5,
    environment: dict[str, str] | None = None,
) -> None:
    """Samples until there is enough to judge; not one stack may be impossible, but a few may be
    shown as pieces."""
    oracle = oracle_of(case.target, interpreter)
    judged = 0
    with target_of(interpreter, case, pinned, environment) as (target, cpu):
        for _ in range(MOST_RUNS):
            recorded = pystrobe.attach(target.pid, *options, seconds=seconds, rate=rate, cpu=cpu)
            verdict = oracle.judge(recorded.collapsed("--idle"))
            quality = recorded.json()["quality"]
            told = f"{verdict.describe()}\n{quality['line']}"
            assert verdict.impossible.total() == verdict.owned_up, told
            assert verdict.owned_up <= 2 + 0.001 * verdict.total, told
            assert quality["incomplete"] > 0 or not verdict.owned_up, told
            assert quality["unresolved"] == 0 or quality["marked"] > 0, told
            assert quality["taken"] + quality["lost"] == quality["deadlines"]
            # A thread that is there all the while is looked at each time that a look is made.
            assert verdict.unseen <= quality["lost"] or oracle.has_threads, told
            judged += verdict.total
            if judged >= ENOUGH:
                return
    pytest.fail(f"only {judged} samples: {quality['line']}")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=[] if case.name in OFTEN else pytest.mark.each_layout
        )
        for case in ALL
    ],
)
def test_every_stack_is_possible(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case, briefly: float
) -> None:
    check_possible(pystrobe, interpreter, case, rate=1000, pinned=True, seconds=briefly)


@pytest.mark.parametrize(
    ("case", "rate", "pinned"),
    [
        pytest.param(
            case, rate, pinned, id=f"{case.name}-{rate}-{'apart' if pinned else 'unpinned'}"
        )
        for case in CALL_HEAVY
        for rate, pinned in OTHER_WAYS + (OF_SOME if case.name in OFTEN else [])
    ],
)
def test_every_stack_is_possible_at_any_rate(
    pystrobe: Pystrobe,
    newest: Interpreter,
    case: Case,
    rate: float,
    pinned: bool,
    briefly: float,
) -> None:
    seconds = briefly if rate >= 1000 else 0.5
    check_possible(pystrobe, newest, case, rate, pinned, seconds=seconds)


def test_the_entry_of_the_evaluation_loop_is_no_stack(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """C code that calls Python back spends a share of its time just there."""
    check_possible(pystrobe, interpreter, Case("wrappers"), rate=10000, pinned=False)


@PINNED
@RATES
def test_every_stack_is_possible_without_rseq(
    pystrobe: Pystrobe, newest: Interpreter, rate: float, pinned: bool
) -> None:
    """As on C libraries that do not have it: the proof comes from /proc then."""
    off = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    check_possible(pystrobe, newest, Case("tower"), rate, pinned, environment=off)


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
    assert report["metadata"]["pause_mode"] == quality["pause_mode"] == pause
    assert quality["taken"] > 0
    if pause == "none":
        assert quality["proved"] == 0
        assert quality["marked"] == quality["taken"]
    else:
        assert quality["proved"] > 0.9 * quality["taken"]


@pytest.mark.each_layout
@pytest.mark.parametrize("case", [Case("tower"), Case("generators")], ids=lambda case: case.name)
def test_a_piece_of_a_stack_is_shown_as_one(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case
) -> None:
    """Unpaused copies are torn; where the thread's first frame was missed nothing else is root."""
    with target_of(interpreter, case, pinned=True) as (target, cpu):
        recorded = pystrobe.attach(target.pid, "--pause", "none", seconds=1, rate=10000, cpu=cpu)
    report = recorded.json()
    quality, pieces = report["quality"], 0
    for stack in recorded.collapsed():
        if not stack.frames:  # the time before a first look that failed
            assert stack.samples <= report["unseen"]["samples"]
            continue
        assert stack.frames[0].name in {"<module>", INCOMPLETE}, stack
        assert "<interpreter trampoline>" not in {frame.name for frame in stack.frames}
        pieces += stack.samples * (stack.frames[0].name == INCOMPLETE)
    # One stands for the deadlines lost before it as well.
    assert pieces <= quality["incomplete"] + quality["lost"]
    if interpreter.minor >= (3, 14) and case.target == "tower":
        # There frames that were left are cleared.
        assert pieces > 0


REAL_TIME = pytest.mark.skipif(
    os.geteuid() != 0 or apart()[0] is None,
    reason="only root may make a program real-time, and it would take the only CPU",
)


@REAL_TIME
@pytest.mark.parametrize("priority", [1, 50])
def test_a_real_time_program_is_sampled_too(
    pystrobe: Pystrobe, newest: Interpreter, priority: int
) -> None:
    """It makes no room for a thread of ours; waiting for that would be waiting for its end."""
    with target_of(newest, Case("tower"), pinned=True) as (target, cpu):
        os.sched_setscheduler(target.pid, os.SCHED_FIFO, os.sched_param(priority))
        recorded = pystrobe.attach(target.pid, seconds=1, rate=100, cpu=cpu)
        refused = pystrobe.run("attach", str(target.pid), "-d", "1", "--pause", "preempt", cpu=cpu)
        os.sched_setscheduler(target.pid, os.SCHED_OTHER, os.sched_param(0))
    quality = recorded.json()["quality"]
    assert quality["pause_mode"] == "ptrace", quality["line"]
    assert quality["proved"] > 0.9 * quality["taken"] > 0, quality["line"]
    assert quality["duration_ns"] < 2e9, quality["line"]
    assert refused.code != 0
    assert f"thread {target.pid} is real-time" in refused.err


@REAL_TIME
def test_a_program_beside_a_real_time_one_is_sampled_in_time(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with (
        target_of(newest, Case("tower"), pinned=True) as (target, cpu),
        target_of(newest, Case("burn"), pinned=True) as (hog, _),
    ):
        os.sched_setscheduler(hog.pid, os.SCHED_FIFO, os.sched_param(50))
        recorded = pystrobe.attach(target.pid, seconds=1, rate=100, cpu=cpu)
        os.sched_setscheduler(hog.pid, os.SCHED_OTHER, os.sched_param(0))
    assert recorded.json()["quality"]["duration_ns"] < 4e9


@REAL_TIME
def test_it_is_told_that_the_way_of_pausing_changed(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    path = pystrobe.directory / "changed.strobe"
    with target_of(newest, Case("tower"), pinned=True) as (target, cpu):
        tool = pystrobe.start("attach", str(target.pid), "-d", "3", "-o", str(path), cpu=cpu)
        until(lambda: path.exists() and path.stat().st_size > 2000)
        os.sched_setscheduler(target.pid, os.SCHED_FIFO, os.sched_param(50))
        out, err = tool.communicate(timeout=60)
        os.sched_setscheduler(target.pid, os.SCHED_OTHER, os.sched_param(0))
    report = Recorded(pystrobe, path, Finished(tool.returncode, out, err)).json()
    assert report["metadata"]["pause_mode"] == "preempt", err
    assert report["quality"]["pause_mode"] == "ptrace", out
    assert "pausing by preempt at first, by ptrace at the end" in " ".join(out.split())


@pytest.mark.chance
@pytest.mark.parametrize(
    "pinned",
    [
        pytest.param(True, id="apart", marks=pytest.mark.each_layout),
        pytest.param(False, id="unpinned", marks=pytest.mark.oldest_and_newest),
    ],
)
def test_depths_are_unbiased(pystrobe: Pystrobe, interpreter: Interpreter, pinned: bool) -> None:
    """Tools that drop or prefer what is quick to read are off by 5 to 25 points here."""
    stacks, samples = [], 0
    with target_of(interpreter, Case("levels", ("0.3",)), pinned) as (target, cpu):
        for _ in range(MOST_RUNS):
            recorded = pystrobe.attach(target.pid, seconds=1, rate=2000, cpu=cpu)
            # Only where it ran: while the target waits for a processor it stays where it is.
            stacks += recorded.collapsed("--mode", "cpu")
            samples += recorded.json()["total"]["cpu_samples"]
            if samples >= 2000:
                break
    outside, *levels = depth_shares(stacks, depth=7)
    assert outside < 0.05
    # Chance alone gives 105 / sqrt(samples) points, and more than 180 in one of 100 cases.
    found = [level / sum(levels) for level in levels]
    assert unevenness(found, target.ready["shares"]) < 0.5 + 250 / sqrt(samples), found
