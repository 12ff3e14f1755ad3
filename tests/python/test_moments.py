# SPDX-License-Identifier: Apache-2.0
"""Samples are of chance moments: what is brief, or follows something else, has its time."""

from __future__ import annotations

import subprocess
from math import sqrt

import pytest
from find import Interpreter
from pystrobe_command import Pystrobe
from running import apart, running
from shares import percent, share_of

# With --native threads are stopped by ptrace too.
EACH_PAUSE = pytest.mark.parametrize(
    "options",
    [(), pytest.param(("--pause", "ptrace"), marks=pytest.mark.matrix), ("--native",)],
    ids=" ".join,
)


@pytest.mark.chance
@pytest.mark.parametrize("rate", [200, 1000])
@pytest.mark.oldest_and_newest
def test_short_bursts_are_charged_to_what_ran(
    pystrobe: Pystrobe, interpreter: Interpreter, rate: float
) -> None:
    """A worker that is nearly always found asleep did not use its CPU time there."""
    target_cpu, sampler_cpu = apart()
    with running(interpreter, "bursts", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, seconds=3, rate=rate, cpu=sampler_cpu)
        truth = target.stop()
    report = recorded.json("--mode", "cpu")
    shares = share_of(recorded.collapsed("--mode", "cpu", "--unit", "ns"), [*truth["cpu"], "pause"])
    # What is seen running is a sample of it: three standard deviations of a share of one half.
    looks = report["total"]["cpu_samples"]
    chance = 150 / sqrt(looks)
    # One that was woken and waits for a CPU cannot be told from one that runs.
    delay = report["quality"]["run_delay_ns"]
    waiting = 100 * delay / (delay + report["total"]["cpu_ns"])
    assert shares["pause"] < 4 + chance + waiting
    true_ratio = truth["cpu"]["long_part"] / sum(truth["cpu"].values())
    seen_ratio = shares["long_part"] / (shares["long_part"] + shares["short_part"])
    assert 100 * seen_ratio == pytest.approx(100 * true_ratio, abs=2 + chance)


@pytest.mark.chance
@pytest.mark.parametrize("rate", [100, pytest.param(300, marks=pytest.mark.matrix)])
def test_what_runs_first_after_a_wait_has_its_time(
    pystrobe: Pystrobe, newest: Interpreter, rate: int
) -> None:
    """However few intervals a thread works between two waits."""
    target_cpu, sampler_cpu = apart()
    with running(newest, "visits", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, seconds=10, rate=rate, cpu=sampler_cpu)
        truth = target.stop()
    total = recorded.json()["total"]
    for view, looks in (("wall", total["samples"]), ("cpu", total["cpu_samples"])):
        seen = share_of(recorded.collapsed("--mode", view, "--unit", "ns"), truth[view])["first"]
        expected = percent(truth[view])["first"]
        chance = 3 * sqrt(expected * (100 - expected) / looks)
        assert seen == pytest.approx(expected, abs=chance + 1), view


def check_brief_functions(
    pystrobe: Pystrobe, interpreter: Interpreter, *options: str, delayed: float = 0
) -> None:
    """Each of two functions runs when the lock has just changed hands, one for less than the time
    between two looks. `delayed`: points by which looks that come late miss it."""
    with running(interpreter, "native") as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=4, rate=1000)
        truth = percent(target.stop()["used"])
    stacks = recorded.collapsed("--mode", "cpu", "--unit", "ns", "--thread", "native")
    found = percent(share_of([stack for stack in stacks if stack.frames], ["digest", "shrink"]))
    # Four standard deviations of a share of a fifth, of a thousand samples.
    assert found == pytest.approx(truth, abs=5 + delayed)


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_what_runs_briefly_has_its_time(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    check_brief_functions(pystrobe, interpreter)


@pytest.mark.chance
def test_what_runs_briefly_has_its_time_with_c_functions(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """A thread is stopped some 50 to 200 us after it was chosen, of the 700 or so that it runs."""
    check_brief_functions(pystrobe, newest, "--native", delayed=2)


def may_be_real_time() -> bool:
    made = subprocess.run(["chrt", "--fifo", "1", "true"], check=False, capture_output=True)
    return made.returncode == 0


@pytest.mark.chance
@EACH_PAUSE
@pytest.mark.oldest_and_newest
def test_system_calls_do_not_draw_samples(
    pystrobe: Pystrobe, interpreter: Interpreter, options: tuple[str, ...]
) -> None:
    """Who is asked from another CPU to let go of its own does so at the end of a system call."""
    if options and not may_be_real_time():
        pytest.skip("a tracer that may not be real-time asks from where it is")
    target_cpu, sampler_cpu = apart()
    with running(interpreter, "system_calls", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=2, rate=1000, cpu=sampler_cpu)
        truth = percent(target.stop()["spent"])
    stacks = recorded.collapsed("--mode", "wall", "--unit", "ns")
    found = percent(share_of([stack for stack in stacks if stack.frames], ["work", "ask"]))
    # The clock's own time, of which each has its part.
    assert found == pytest.approx(truth, abs=8)


@pytest.mark.chance
@EACH_PAUSE
def test_work_between_naps_is_seen_as_often_as_it_is_done(
    pystrobe: Pystrobe, newest: Interpreter, options: tuple[str, ...]
) -> None:
    """Who sleeps when it is chosen may be awake when it is looked at, and the other way round."""
    if options and not may_be_real_time():
        pytest.skip("a tracer that may not be real-time asks from where it is")
    target_cpu, sampler_cpu = apart()
    with running(newest, "naps", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=3, rate=1000, cpu=sampler_cpu)
        truth = percent(target.stop()["spent"])
    stacks = recorded.collapsed("--mode", "wall", "--unit", "ns", "--idle")
    found = percent(share_of([stack for stack in stacks if stack.frames], ["work", "nap"]))
    # Four standard deviations, of runs that did not disturb each other.
    assert found["work"] == pytest.approx(truth["work"], rel=0.35)


@pytest.mark.chance
@EACH_PAUSE
def test_who_wakes_just_before_it_is_looked_at_is_seen(
    pystrobe: Pystrobe, newest: Interpreter, options: tuple[str, ...]
) -> None:
    """Of many threads another one has the lock by then than when one was chosen."""
    if options and not may_be_real_time():
        pytest.skip("a tracer that may not be real-time asks from where it is")
    target_cpu, sampler_cpu = apart()
    with running(newest, "many_brief", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=3, rate=1000, cpu=sampler_cpu)
    report = recorded.json()
    # They use a third of a CPU: ten looks find each of them at work.
    assert report["total"]["cpu_ns"] > 0.1 * report["quality"]["duration_ns"]
    assert report["unseen"]["cpu_ns"] < 0.1 * report["total"]["cpu_ns"]


@pytest.mark.chance
@EACH_PAUSE
def test_work_without_the_lock_has_its_cpu_time(
    pystrobe: Pystrobe, newest: Interpreter, options: tuple[str, ...]
) -> None:
    """It is far briefer than the time between two looks, and so is the other half."""
    if options and not may_be_real_time():
        pytest.skip("a tracer that may not be real-time asks from where it is")
    with running(newest, "handovers") as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=8, rate=400)
        truth = percent(target.stop()["used"])
    stacks = recorded.collapsed("--mode", "cpu", "--unit", "ns", "--thread", "halves")
    found = percent(share_of([stack for stack in stacks if stack.frames], ["digest", "count"]))
    # Four standard deviations of what is left by the looks, some 150, that find it with the lock.
    assert found == pytest.approx(truth, abs=20)


@pytest.mark.chance
def test_what_comes_around_a_nap_has_its_time_wherever_that_ends(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """A timer of ours ends a nap that was nearly over, and what comes then follows our timer."""
    with running(newest, "around_naps") as target:
        recorded = pystrobe.attach(target.pid, seconds=4, rate=1000)
        truth = percent(target.stop()["spent"])
    stacks = recorded.collapsed("--mode", "wall", "--unit", "ns", "--idle")
    found = percent(share_of([stack for stack in stacks if stack.frames], list(truth)))
    # Four standard deviations of a sixteenth, and as much for what is not mended by that.
    assert found["before"] == pytest.approx(truth["before"], abs=3.5)


@pytest.mark.chance
def test_a_sleep_has_no_cpu_time_on_the_samplers_cpu(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """Who is woken while the sampler has the CPU waits there like who was taken off it."""
    cpu, _ = apart()
    with running(newest, "around_naps", cpu=cpu) as target:
        recorded = pystrobe.attach(target.pid, seconds=4, rate=1000, cpu=cpu)
    shares = share_of(recorded.collapsed("--mode", "cpu", "--unit", "ns"), ["nap"])
    # What the calls themselves take: going to sleep and coming back.
    assert shares["nap"] < 15
