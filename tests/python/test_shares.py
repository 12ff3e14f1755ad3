# SPDX-License-Identifier: Apache-2.0
"""Time goes to where it was spent: wall, CPU and lock views against what really happened."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import sqrt
from typing import Any

import pytest
from find import Interpreter
from oracle import INCOMPLETE
from pystrobe_command import Pystrobe, Recorded, with_few_descriptors
from running import Running, apart, cpus, running
from shares import percent, share_of

BURNERS = ("burn50", "burn30", "burn20", "nap")


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_cpu_and_wall_shares(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    target_cpu, sampler_cpu = apart()
    with running(interpreter, "burn", "nap", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=1000, cpu=sampler_cpu)
        truth = target.stop()
    quality = recorded.json()["quality"]
    # A missed deadline leaves the time until the next to whatever is found there.
    missed = 50 * (quality["lost"] + quality["late"]) / quality["deadlines"]
    cpu = share_of(recorded.collapsed("--mode", "cpu", "--unit", "ns"), BURNERS)
    assert cpu == pytest.approx({**percent(truth["cpu"]), "nap": 0}, abs=4 + missed)
    wall = share_of(recorded.collapsed("--mode", "wall", "--unit", "ns"), BURNERS)
    assert wall == pytest.approx(percent(truth["wall"]), abs=6 + missed)


@contextmanager
def busy_loop(cpu: int) -> Iterator[None]:
    """Something else that wants the CPU all the time."""
    loop = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_waiting_for_a_cpu_uses_none(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    """A thread that was woken, or lost its CPU, is awake where it waits, and runs elsewhere."""
    target_cpu, sampler_cpu = apart()
    with busy_loop(target_cpu), running(interpreter, "visits", "short", cpu=target_cpu) as target:
        recorded = pystrobe.attach(target.pid, seconds=8, rate=100, cpu=sampler_cpu)
        truth = percent(target.stop()["cpu"])
    report = recorded.json()
    looks = report["total"]["cpu_samples"]
    seen = share_of(recorded.collapsed("--mode", "cpu", "--unit", "ns"), truth)
    by_count = share_of(recorded.collapsed("--mode", "cpu"), truth)
    for name, expected in truth.items():
        # Three standard deviations; looks of one visit are not independent.
        chance = 3 * sqrt(2 * expected * (100 - expected) / looks)
        told = (name, by_count, report["total"], report["quality"]["line"])
        assert seen[name] == pytest.approx(expected, abs=chance + 3), told


def test_lock_view_leaves_out_sleep(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "burn", "nap") as target:
        recorded = pystrobe.attach(target.pid, seconds=1, rate=1000)
    gil = share_of(recorded.collapsed("--mode", "gil", "--unit", "ns"), BURNERS)
    assert gil["nap"] < 2
    assert gil["burn50"] > gil["burn30"] > gil["burn20"] > 5


class CpuClock:
    """What the kernel charged the process, at many moments, on a thread of its own."""

    def __init__(self, target: Running) -> None:
        self._target = target
        # Time before, what was charged, time after: between them this thread may lose its CPU.
        self._readings: list[tuple[int, int, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> CpuClock:
        self._read()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._read()

    def _watch(self) -> None:
        while not self._stop.is_set():
            self._read()
            time.sleep(0.005)

    def _read(self) -> None:
        before = time.monotonic_ns()
        self._readings.append((before, self._target.cpu_ns(), time.monotonic_ns()))

    def between(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """The least and the most it can be: by the readings just inside and just outside."""
        inside = [
            cpu for before, cpu, after in self._readings if begin_ns <= before <= after <= end_ns
        ]
        last_before = max(cpu for _, cpu, after in self._readings if after <= begin_ns)
        first_after = min(cpu for before, cpu, _ in self._readings if before >= end_ns)
        return inside[-1] - inside[0], first_after - last_before


@pytest.mark.parametrize("name", ["burn", "threads", "native"])
@pytest.mark.oldest_and_newest
def test_cpu_total_is_what_the_kernel_charged(
    pystrobe: Pystrobe, interpreter: Interpreter, name: str
) -> None:
    arguments = ["nap"] if name == "burn" else []
    with running(interpreter, name, *arguments) as target, CpuClock(target) as clock:
        recorded = pystrobe.attach(target.pid, seconds=1.5, rate=1000)
    report = recorded.json("--idle")
    assert report["quality"]["cpu_source"] == "schedstat"
    begin = report["metadata"]["start_monotonic_ns"]
    least, most = clock.between(begin, begin + report["quality"]["duration_ns"])
    assert 0.99 * least <= report["total"]["cpu_ns"] <= 1.01 * most


@pytest.mark.parametrize("options", [(), ("--pause", "ptrace")], ids=" ".join)
@pytest.mark.oldest_and_newest
def test_cpu_time_is_told_where_there_is_one_cpu(
    pystrobe: Pystrobe, interpreter: Interpreter, options: tuple[str, ...]
) -> None:
    """There the thread has been charged before the sampler can ask what it was charged."""
    cpu, _ = apart()
    with running(interpreter, "fib", cpu=cpu) as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=1, rate=500, cpu=cpu)
    report = recorded.json()
    assert report["total"]["cpu_ns"] > 0.3 * report["quality"]["duration_ns"]
    assert report["unseen"]["cpu_ns"] < 0.05 * report["total"]["cpu_ns"]


def by_thread(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {thread["name"]: thread["total"] for thread in report["threads"]}


def lock_share(report: dict[str, Any]) -> float:
    """For how much of the time that the sampler itself had a CPU anybody held the lock."""
    threads = [thread for thread in report["threads"] if thread["total"]["wall_ns"] > 0]
    unseen = report["unseen"]["wall_ns"] / len(threads)
    return float(report["total"]["gil_ns"] / (report["quality"]["duration_ns"] - unseen))


@pytest.mark.chance
@pytest.mark.each_layout
def test_lock_time_is_the_work_done(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    """Who holds the lock longer gets more done."""
    if interpreter.free_threaded:
        pytest.skip("there is no lock")
    with running(interpreter, "threads") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=1000)
        done = percent(target.stop()["rounds"])
    report = recorded.json("--idle")
    threads = by_thread(report)
    # Who has the lock but no CPU gets nothing done, and is not sampled.
    held = percent({name: threads[name]["gil_samples"] for name in done})
    assert held == pytest.approx(done, abs=15)
    assert 0.8 < lock_share(report) < 1.02
    if report["quality"]["late"] < 0.05 * report["quality"]["taken"]:
        held = percent({name: threads[name]["gil_ns"] for name in done})
        assert held == pytest.approx(done, abs=15)


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_who_waits_for_a_cpu_keeps_the_lock(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    if interpreter.free_threaded:
        pytest.skip("there is no lock")
    target_cpu, sampler_cpu = apart()
    with ExitStack() as stack:
        target = stack.enter_context(running(interpreter, "fib", cpu=target_cpu))
        for _ in range(2):
            stack.enter_context(running(interpreter, "tower", cpu=target_cpu))
        report = pystrobe.attach(target.pid, seconds=2, rate=1000, cpu=sampler_cpu).json("--idle")
    assert report["total"]["cpu_ns"] < 0.8 * report["total"]["wall_ns"], "it did not have to wait"
    assert 0.95 < lock_share(report) < 1.02


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_native_code_runs_without_the_lock(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    with running(interpreter, "native") as target:
        recorded = pystrobe.attach(target.pid, seconds=1.5, rate=1000)
    report = recorded.json("--idle")
    native = by_thread(report)["native"]
    assert native["cpu_samples"] > 0
    if not interpreter.free_threaded:
        assert native["gil_samples"] < 0.25 * native["cpu_samples"]
    stacks = recorded.collapsed("--mode", "cpu", "--unit", "ns", "--thread", "native")
    shares = share_of([stack for stack in stacks if stack.frames], ["digest", "shrink"])
    assert sum(shares.values()) > 90
    # Without a stack only where the sampler itself had no CPU for long.
    outside = sum(stack.samples for stack in stacks if not stack.frames)
    assert outside <= report["unseen"]["cpu_ns"] + 0.1 * native["cpu_ns"]


@pytest.mark.oldest_and_newest
def test_a_thread_that_ptrace_stopped_is_not_taken_for_asleep(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """On the sampler's own CPU, where it stands still for another reason as well."""
    cpu = apart()[0]
    with running(interpreter, "burn", cpu=cpu) as target:
        recorded = pystrobe.attach(target.pid, "--pause", "ptrace", rate=200, cpu=cpu)
    total = recorded.json()["total"]
    assert total["cpu_samples"] > 0.9 * total["samples"], total


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_threads_without_the_lock_take_turns(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    """More of them run at once than one look takes in: none is seen less for having come last."""
    with running(interpreter, "many_native") as target:
        before = target.cpu_ns_by_thread()
        recorded = pystrobe.attach(target.pid, seconds=4, rate=200)
        charged = {tid: ns - before[tid] for tid, ns in target.cpu_ns_by_thread().items()}
    report = recorded.json("--idle")
    duration_ns = report["quality"]["duration_ns"]
    threads = {one["tid"]: one["total"] for one in report["threads"] if one["tid"] in charged}
    assert len(threads) == target.ready["threads"] + 1
    for tid, total in threads.items():
        # Starting and ending takes time too, of which there is a lot where many want the CPU.
        assert total["cpu_ns"] > charged[tid] / 4, tid
        assert total["wall_ns"] == pytest.approx(duration_ns, rel=0.1), tid
    assert report["unseen"]["wall_ns"] < 0.05 * report["total"]["wall_ns"]
    assert report["unseen"]["cpu_ns"] < 0.05 * report["total"]["cpu_ns"]
    functions = ["made_first", "made_last"]
    wall = share_of(recorded.collapsed("--mode", "wall", "--unit", "ns", "--idle"), functions)
    assert wall["made_first"] == pytest.approx(wall["made_last"], abs=5)


@pytest.mark.each_layout
def test_idle_threads_are_idle(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    with running(interpreter, "idle") as target:
        recorded = pystrobe.attach(target.pid, seconds=1, rate=100)
    everything = recorded.json("--idle")
    idle = [one for one in everything["threads"] if one["tid"] != target.pid]
    assert len(idle) == target.ready["idle"]
    main = next(one for one in everything["threads"] if one["tid"] == target.pid)
    seen_ns = main["total"]["wall_ns"]
    for thread in idle:
        assert thread["total"]["cpu_samples"] == 0, thread["name"]
        assert thread["total"]["gil_ns"] == 0, thread["name"]
        assert thread["total"]["wall_ns"] == pytest.approx(seen_ns, rel=0.05), thread["name"]
        kind = thread["name"].split("-")[0]
        assert kind in {"sleeper", "waiter"}
        functions = everything["functions"]
        seen = {functions[at]["name"] for stack in thread["stacks"] for at, _ in stack["frames"]}
        assert kind in seen
    active = recorded.json()
    assert [one["tid"] for one in active["threads"]] == [target.pid]
    assert active["idle_threads_hidden"] == target.ready["idle"]


@pytest.mark.each_layout
def test_the_main_thread_is_one_among_threads_that_are_born(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """Up to 3.11 a thread state that is new has its parent's ids for a moment."""
    with running(interpreter, "threadchurn") as target:
        recorded = pystrobe.attach(target.pid, seconds=2)
    report = recorded.json("--idle")
    (main,) = [thread for thread in report["threads"] if thread["tid"] == target.pid]
    roots: Counter[str] = Counter()
    for stack in main["stacks"]:
        if stack["frames"]:
            roots[report["functions"][stack["frames"][0][0]]["name"]] += stack["samples"]
    pieces = roots.pop(INCOMPLETE, 0)
    assert list(roots) == ["<module>"]
    assert pieces <= 2 + 0.005 * roots.total()


def test_time_before_the_first_look_is_told(pystrobe: Pystrobe, newest: Interpreter) -> None:
    """A thread that is born between two looks has such a time: in samples, figures and words."""
    with running(newest, "threadchurn") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=20)
    report = recorded.json("--idle")
    quality, unseen = report["quality"], report["unseen"]["wall_ns"]
    percent = 100 * unseen / report["total"]["wall_ns"]
    assert percent >= 1
    without_frames = sum(
        stack["wall_ns"]
        for thread in report["threads"]
        for stack in thread["stacks"]
        if not stack["frames"]
    )
    assert unseen <= without_frames
    text = recorded.collapsed("--idle", "--unit", "ns")
    assert sum(stack.samples for stack in text if not stack.looked_at) == unseen
    assert quality["unseen_ns"] == pytest.approx(unseen, rel=0.01)
    assert quality["thread_ns"] == pytest.approx(report["total"]["wall_ns"], rel=0.01)
    assert quality["unseen_cpu_ns"] == pytest.approx(report["unseen"]["cpu_ns"], rel=0.01)
    assert quality["cpu_ns"] == pytest.approx(report["total"]["cpu_ns"], rel=0.01)
    assert re.search("of the threads' wall time .*without a stack: before", quality["line"])
    table = pystrobe.succeed("report", str(recorded.path), "--idle").out
    assert f"{percent:.1f}  without a stack: before the first look" in table


def test_more_threads_than_descriptors(pystrobe: Pystrobe, newest: Interpreter) -> None:
    path = pystrobe.directory / "few.strobe"
    with running(newest, "idle", "100") as target:
        options = ("-d", "1", "-r", "200", "-o", str(path))
        finished = with_few_descriptors(pystrobe, 64, "attach", str(target.pid), *options)
    assert finished.code == 0, finished
    report = Recorded(pystrobe, path, finished).json("--idle")
    assert len(report["threads"]) == target.ready["idle"] + 1
    for thread in report["threads"]:
        assert thread["total"]["wall_ns"] > 0.9 * report["quality"]["duration_ns"], thread["name"]
        assert all(stack["frames"] for stack in thread["stacks"]), thread["name"]
        busy = thread["tid"] == target.pid
        assert (thread["total"]["cpu_ns"] > 0) == busy, thread["name"]


@pytest.mark.chance
@pytest.mark.each_layout
def test_a_thread_is_in_one_interpreter_at_a_time(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    with running(interpreter, "nested_interpreter") as target:
        recorded = pystrobe.attach(target.pid, seconds=4, rate=500)
        truth = percent(target.stop()["wall"])
    report = recorded.json("--idle")
    assert [thread["tid"] for thread in report["threads"]] == [target.pid]
    assert report["total"]["wall_ns"] == pytest.approx(report["quality"]["duration_ns"], rel=0.01)
    names = ("outer_spin", "outer_nap", "inner_spin", "inner_nap")
    wall = share_of(recorded.collapsed("--idle", "--mode", "wall", "--unit", "ns"), names)
    inner = wall["inner_spin"] + wall["inner_nap"]
    seen = {"outer_spin": wall["outer_spin"], "inner": inner, "outer_nap": wall["outer_nap"]}
    assert seen == pytest.approx(truth, abs=6)


@pytest.mark.slow
def test_thousands_of_threads(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "manythreads", "3000") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=100)
        assert target.alive()
    report = recorded.json("--idle")
    assert len(report["threads"]) == 3001
    busy = next(one for one in report["threads"] if one["tid"] == target.pid)
    assert busy["total"]["cpu_ns"] > 0.9 * report["total"]["cpu_ns"]
    # From the first moment on, each with its stack.
    for thread in report["threads"]:
        assert thread["total"]["wall_ns"] > 0.9 * report["quality"]["duration_ns"], thread["name"]
        assert all(stack["frames"] for stack in thread["stacks"]), thread["name"]


@pytest.mark.chance
@pytest.mark.parametrize("rate", [100, 1000])
def test_threads_with_short_lives_are_accounted_for(
    pystrobe: Pystrobe, newest: Interpreter, rate: int
) -> None:
    """CPU time that no look saw is shown as such, and nobody waits longer than he lived."""
    with running(newest, "short_lives") as target:
        begin = time.monotonic()
        recorded = pystrobe.attach(target.pid, seconds=3, rate=rate)
        seconds = time.monotonic() - begin
        truth = target.stop()
    share = seconds / truth["seconds"]
    report = recorded.json("--idle")
    requests = [one for one in report["threads"] if one["name"].startswith("request")]
    wall_ns = sum(one["total"]["wall_ns"] for one in requests)
    assert wall_ns == pytest.approx(share * truth["wall_ns"], rel=0.2 if rate == 1000 else 0.4)
    assert report["total"]["cpu_ns"] >= 0.95 * share * truth["cpu_ns"]
    names = {function["name"]: function for function in report["functions"]}
    if rate == 1000:
        assert len(requests) > 0.8 * share * truth["requests"]
        assert "compute" in names


@pytest.mark.chance
@pytest.mark.each_layout
def test_threads_that_only_sleep_are_found_at_once(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """The lock does not name who hardly ever has it."""
    with running(interpreter, "brief_sleeps") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=1000)
        lives = target.stop()["lives"]
    report = recorded.json("--idle")
    begin = report["metadata"]["start_monotonic_ns"] / 1e9
    end = begin + report["quality"]["duration_ns"] / 1e9
    lived = [min(end, last) - max(begin, first) for first, last in lives]
    brief = [one for one in report["threads"] if one["name"] == "brief"]
    assert len(brief) >= len([seconds for seconds in lived if seconds > 0.03])
    seen = sum(one["total"]["wall_ns"] for one in brief) / 1e9
    assert seen == pytest.approx(sum(seconds for seconds in lived if seconds > 0), rel=0.1)


def test_the_time_held_is_told_where_there_is_one_cpu(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """There the target waits for all that the sampler does, not for the copies alone."""
    cpu = cpus()[-1]
    with running(newest, "tower", cpu=cpu) as target:
        quality = pystrobe.attach(target.pid, seconds=2, rate=1000, cpu=cpu).json()["quality"]
    # Others may keep it waiting too.
    assert quality["own_cpu_ns"] == pytest.approx(quality["held_ns"], rel=0.5)
    assert quality["held_ns"] < 1.1 * quality["run_delay_ns"]


@pytest.mark.parametrize(("options", "limit"), [((), 0.01), (("--max-overhead", "0.2%"), 0.002)])
def test_the_target_is_held_no_longer_than_by_default_or_asked(
    pystrobe: Pystrobe, newest: Interpreter, options: tuple[str, ...], limit: float
) -> None:
    with running(newest, "tower") as target:
        recorded = pystrobe.attach(target.pid, *options, seconds=3, rate=None)
    report = recorded.json()
    metadata, quality = report["metadata"], report["quality"]
    assert (metadata["wanted_rate_hz"], metadata["max_overhead"]) == (1000, limit)
    assert quality["taken"] > 0
    assert 0 < quality["held_ns"] <= 1.2 * limit * quality["duration_ns"]
    # A machine may be so fast that the default limit lowers nothing in the end.
    lowered = quality["final_rate_hz"] < 995
    assert lowered or not options
    said = " ".join(recorded.finished.out.split())
    words = f"(1,000 wanted, lowered to hold the target about {100 * limit:.1f} % of its time)"
    assert (words in said) == lowered, said
    assert ("For more samples: record with -r 1000" in said) == lowered, said


@pytest.mark.chance
def test_greenlets_that_run_no_python_are_outside(pystrobe: Pystrobe) -> None:
    """In 3.11 and 3.12 they look like a run of the interpreter that has only just begun."""
    own = Interpreter(platform.python_version(), sys.executable, None, free_threaded=False)
    with running(own, "greenlets") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=1000)
        truth = target.stop()
    report = recorded.json()
    stacks = [stack for thread in report["threads"] for stack in thread["stacks"]]
    outside = sum(stack["wall_ns"] for stack in stacks if not stack["frames"])
    share = truth["outside"] / sum(truth.values())
    assert outside / report["total"]["wall_ns"] == pytest.approx(share, abs=0.1)
    assert report["quality"]["lost"] < 0.05 * report["quality"]["deadlines"]
