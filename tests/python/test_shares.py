# SPDX-License-Identifier: Apache-2.0
"""Time goes to where it was spent: wall, CPU and lock views against what really happened."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from math import sqrt
from typing import Any

import pytest
from collapsed import Stack
from find import Interpreter
from pystrobe_command import Pystrobe
from running import Running, apart, running

BURNERS = ("burn50", "burn30", "burn20", "nap")


def share_of(stacks: Iterable[Stack], functions: Iterable[str]) -> dict[str, float]:
    """Percent of the total below each of these functions."""
    totals: dict[str, int] = defaultdict(int)
    for stack in stacks:
        names = {frame.name for frame in stack.frames}
        for function in functions:
            totals[function] += stack.samples * (function in names)
        totals[""] += stack.samples
    return {function: 100 * totals[function] / totals[""] for function in functions}


def percent(seconds: dict[str, float]) -> dict[str, float]:
    total = sum(seconds.values())
    return {name: 100 * value / total for name, value in seconds.items()}


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


@pytest.mark.parametrize("rate", [200, 1000])
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
        self._readings: list[tuple[int, int]] = []
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
        self._readings.append((time.monotonic_ns(), self._target.cpu_ns()))

    def between(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """The least and the most it can be: by the readings just inside and just outside."""
        after = bisect_left(self._readings, (begin_ns, 0))
        before = bisect_left(self._readings, (end_ns, 0)) - 1
        least = self._readings[before][1] - self._readings[after][1]
        most = self._readings[before + 1][1] - self._readings[after - 1][1]
        return max(least, 0), most


@pytest.mark.parametrize("name", ["burn", "threads", "native"])
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


def by_thread(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {thread["name"]: thread["total"] for thread in report["threads"]}


def test_lock_time_is_the_work_done(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    """Who holds the lock longer gets more done."""
    if interpreter.free_threaded:
        pytest.skip("there is no lock")
    with running(interpreter, "threads") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=1000)
        done = percent(target.stop()["rounds"])
    report = recorded.json("--idle")
    threads = by_thread(report)
    held = percent({name: threads[name]["gil_ns"] for name in done})
    assert held == pytest.approx(done, abs=15)
    duration = report["quality"]["duration_ns"]
    assert 0.8 < report["total"]["gil_ns"] / duration < 1.02


def test_native_code_runs_without_the_lock(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    with running(interpreter, "native") as target:
        recorded = pystrobe.attach(target.pid, seconds=1.5, rate=1000)
    native = by_thread(recorded.json("--idle"))["native"]
    assert native["cpu_ns"] > 0
    if not interpreter.free_threaded:
        assert native["gil_ns"] < 0.5 * native["cpu_ns"]
    leaves = share_of(
        recorded.collapsed("--mode", "cpu", "--unit", "ns", "--thread", "native"),
        ["digest", "shrink"],
    )
    assert sum(leaves.values()) > 90


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


@pytest.mark.slow
def test_thousands_of_threads(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "manythreads", "3000") as target:
        recorded = pystrobe.attach(target.pid, seconds=2, rate=100)
        assert target.alive()
    report = recorded.json("--idle")
    assert len(report["threads"]) == 3001
    busy = next(one for one in report["threads"] if one["tid"] == target.pid)
    assert busy["total"]["cpu_ns"] > 0.9 * report["total"]["cpu_ns"]
