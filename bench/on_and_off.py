# SPDX-License-Identifier: Apache-2.0
"""What a tool costs its target, by turns with it and without: the tool is stopped (SIGSTOP) and
goes on again many times a second. Of two turns next to each other the machine has the same speed,
which on a shared host is not so of seconds."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import paths  # noqa: F401  # isort: skip
import tools
from observe import Run, run_delay_ns
from pystrobe.bench._turns import ToolError
from running import Running

TURN_S = 0.06
#: From SIGCONT until the tool is at what it does always: it may first make up for what it missed.
WARM_UP_S = 0.02
STOP_S = 5.0  # the most that a tool may take to stop without holding the target


@dataclass(frozen=True)
class Turn:
    """With the tool, between two without it."""

    slow: float  # speed of the target without it / with it
    run_delay: float  # share of the time that the target waited for a CPU, by the kernel's count
    cpu: float  # share of a CPU that the tool used


def turns(tool: tools.Tool, request: tools.Request, target: Running, cpu: int) -> list[Turn]:
    """As many as there is time for in a run of the tool, one at least. It is pinned to a CPU that
    is not the target's.

    :raises ToolError: the tool failed, or it cannot be stopped without stopping the target.
    """
    run = Run(tool, request, cpu)
    pid = run.process.pid
    end = time.perf_counter() + request.seconds - 1
    made: list[Turn] = []
    try:
        before = speed_without(pid, target)
        while not made or time.perf_counter() < end:
            during, run_delay, used = turn_with(pid, target)
            after = speed_without(pid, target)
            made.append(Turn((before + after) / 2 / during, run_delay, used))
            before = after
    finally:
        os.kill(pid, signal.SIGCONT)  # not yet waited for, it is there, ended or not
        run.end()
    return made


def speed_without(pid: int, target: Running) -> float:
    stop(pid, target)
    return target.speed(TURN_S)


def turn_with(pid: int, target: Running) -> tuple[float, float, float]:
    """Speed of the target, share of the time that it waited for a CPU, the tool's CPU time."""
    os.kill(pid, signal.SIGCONT)
    time.sleep(WARM_UP_S)
    delay, used, since = run_delay_ns(target), cpu_ns(pid), time.perf_counter()
    speed = target.speed(TURN_S)
    passed = 1e9 * (time.perf_counter() - since)
    if not speed:
        raise ToolError("the target did not run")
    return speed, (run_delay_ns(target) - delay) / passed, (cpu_ns(pid) - used) / passed


def stop(pid: int, target: Running) -> None:
    """At a moment when the tool does not hold the target by ptrace."""
    end = time.perf_counter() + STOP_S
    while time.perf_counter() < end:
        os.kill(pid, signal.SIGSTOP)
        while (state := state_of(pid)) not in "Tt":
            if state in "ZX":
                raise ToolError("ended before it should")
            if time.perf_counter() > end:
                raise ToolError(f"could not be stopped: it is in state {state}")
            time.sleep(0.0002)
        time.sleep(0.001)  # what it has just asked of the target comes about
        if state_of(target.pid) not in "Tt":
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(random.uniform(0, 0.002))
    raise ToolError("held the target whenever it was stopped")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def cpu_ns(pid: int) -> int:
    """What the kernel has charged its threads that there are."""
    charged = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            charged += int((task / "schedstat").read_text().split()[0])
    return charged
