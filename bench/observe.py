# SPDX-License-Identifier: Apache-2.0
"""Runs a tool against a target and watches both."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import paths  # noqa: F401  # isort: skip
import tools
from pystrobe.bench._turns import ToolError, spread
from running import Running

SETTLE_S = 0.4  # until the slowest tool has started to sample


@dataclass(frozen=True)
class Observation:
    """One run of a tool."""

    wall_s: float
    recording_s: float  # without the start; some tools go on until they have all their samples
    cpu_s: float  # of the tool, its start included
    max_rss_kb: int
    slow: float  # speed of the target just before / during the run
    run_delay: float  # share of the time that the target waited for a CPU, by the kernel's count
    said: str


class PeakMemory:
    """Of a process, read until it ends: ru_maxrss counts what it was before its exec too, which is
    a copy of this Python."""

    def __init__(self, pid: int) -> None:
        self.kb = 0
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            for line in self._status.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.kb = max(self.kb, int(line.split()[1]))


def run_delay_ns(target: Running) -> int:
    return int(Path(f"/proc/{target.pid}/schedstat").read_text().split()[1])


@dataclass(frozen=True)
class Ended:
    """What a tool was until it ended."""

    wall_s: float
    cpu_s: float
    max_rss_kb: int
    said: str


class Run:
    """A tool at work, pinned to a CPU or not."""

    def __init__(self, tool: tools.Tool, request: tools.Request, cpu: int | None) -> None:
        self._tool, self._request = tool, request
        self._log = Path(f"{request.output}.log")
        self._begin = time.perf_counter()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                tool.command(request),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=tools.own_environment(),
                preexec_fn=None if cpu is None else lambda: os.sched_setaffinity(0, {cpu}),
            )
        self._peak = PeakMemory(self.process.pid)
        time.sleep(SETTLE_S)

    def end(self) -> Ended:
        """Waits until it has what was asked of it."""
        process = self.process
        with ended_in_time(process, self._request.seconds):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - self._begin
        self._peak.end()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = self._log.read_text(errors="replace")
        if process.returncode not in self._tool.exit_codes:
            raise ToolError(f"exit code {process.returncode}: {said.strip()[-300:]}")
        return Ended(wall, usage.ru_utime + usage.ru_stime, self._peak.kb, said)


def observe(
    tool: tools.Tool, request: tools.Request, target: Running, cpu: int | None
) -> Observation:
    """Runs the tool to its end, pinned to a CPU or not."""
    before = target.speed(max(0.5, request.seconds / 4))
    run = Run(tool, request, cpu)
    delay, since = run_delay_ns(target), time.perf_counter()
    during = target.speed(max(0.2, request.seconds - 2 * SETTLE_S))
    delayed = (run_delay_ns(target) - delay) / 1e9 / (time.perf_counter() - since)
    ended = run.end()
    return Observation(
        ended.wall_s,
        max(request.seconds, ended.wall_s - SETTLE_S),
        ended.cpu_s,
        ended.max_rss_kb,
        before / during if during else float("inf"),
        delayed,
        ended.said,
    )


@contextmanager
def ended_in_time(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Interrupts a tool that goes on until it has all the samples asked for, as Ctrl-C does."""
    timers = [
        threading.Timer(seconds + 2, process.send_signal, [signal.SIGINT]),
        threading.Timer(seconds + 60, process.kill),
    ]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


def recorded(tool: tools.Tool, request: tools.Request) -> tools.Recording:
    try:
        recording = tool.read(request)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"converting took more than {tools.CONVERTING_S} s") from error
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise ToolError(f"unreadable: {error}") from error
    if not recording.stacks:
        raise ToolError("no samples")
    return recording


def timed(command: list[str], environment: Mapping[str, str] | None = None) -> tuple[float, int]:
    """Seconds and exit code of a command whose output does not matter."""
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment or tools.own_environment(),
    )
    return time.perf_counter() - begin, done.returncode


def repeat(times: int, measure: Callable[[], float]) -> dict[str, float]:
    return spread([measure() for _ in range(times)])
