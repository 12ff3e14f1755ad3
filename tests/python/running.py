# SPDX-License-Identifier: Apache-2.0
"""Starts targets, watches their progress and ends them."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from find import Interpreter

TARGETS = Path(__file__).resolve().parent.parent / "targets"
READY_TIMEOUT_S = 60.0


def cpus() -> list[int]:
    """The CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def apart() -> tuple[int | None, int | None]:
    """A CPU for the target and another for the sampler; nothing where there is only one."""
    usable = cpus()
    return (usable[0], usable[-1]) if len(usable) > 1 else (None, None)


@dataclass
class Running:
    """A target at work."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    counter: memoryview = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def progress(self) -> int:
        return int(self.counter[0])

    def speed(self, seconds: float) -> float:
        """Rounds of its work per second, over the next so many seconds."""
        before, begin = self.progress(), time.perf_counter()
        time.sleep(seconds)
        return (self.progress() - before) / (time.perf_counter() - begin)

    def alive(self) -> bool:
        return self.process.poll() is None

    def status(self, key: str) -> str:
        """A field of /proc/PID/status."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return line.split(":", 1)[1].strip()
        raise KeyError(key)

    def cpu_ns(self) -> int:
        """What the kernel charged all its threads."""
        return sum(self.cpu_ns_by_thread().values())

    def cpu_ns_by_thread(self) -> dict[int, int]:
        return {
            int(task.name): int((task / "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{self.pid}/task").iterdir()
        }

    def stop(self) -> dict[str, Any]:
        """Asks it to end; returns the truth that it tells, if any."""
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=READY_TIMEOUT_S)
        for line in output.splitlines():
            told = json.loads(line)
            if "truth" in told:
                return dict(told["truth"])
        return {}


def visible_directory(interpreter: Interpreter) -> Path:
    """A directory, as seen from outside, that the interpreter's root contains."""
    base = Path(interpreter.root) / "tmp" if interpreter.root else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix="target-", dir=base))


def inside(interpreter: Interpreter, path: Path) -> str:
    """The path as the interpreter sees it."""
    return "/" + str(path.relative_to(interpreter.root)) if interpreter.root else str(path)


def copy_targets(interpreter: Interpreter, directory: Path) -> Path:
    if not interpreter.root:
        return TARGETS
    destination = directory / "targets"
    shutil.copytree(TARGETS, destination, ignore=shutil.ignore_patterns("__pycache__"))
    return destination


@contextmanager
def running(
    interpreter: Interpreter,
    target: str,
    *arguments: str,
    cpu: int | None = None,
    environment: dict[str, str] | None = None,
) -> Iterator[Running]:
    """Runs tests/targets/TARGET.py, pinned to a CPU or not; kills it at the end."""
    directory = visible_directory(interpreter)
    process: subprocess.Popen[str] | None = None
    try:
        progress = directory / "progress"
        progress.write_bytes(bytes(8))
        script = copy_targets(interpreter, directory) / f"{target}.py"
        variables = {**os.environ, **(environment or {})}
        variables["TARGET_PROGRESS"] = inside(interpreter, progress)
        variables["PYTHONDONTWRITEBYTECODE"] = "1"
        variables["PYTHONFAULTHANDLER"] = "1"  # should it crash, it says where
        process = subprocess.Popen(
            interpreter.command(inside(interpreter, script), *arguments),
            stdout=subprocess.PIPE,
            text=True,
            env=variables,
            start_new_session=True,
            preexec_fn=None if cpu is None else lambda: os.sched_setaffinity(0, {cpu}),
        )
        with progress.open("r+b") as file:
            counter = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
        yield Running(process, wait_until_ready(process), counter)
    finally:
        if process:
            if process.poll() not in (None, 0):
                print(f"target {target} had ended with {process.returncode}")
            end_group(process)
        shutil.rmtree(directory, ignore_errors=True)


def wait_until_ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"target ended before it was ready: {process.args!r}")
    return dict(json.loads(line)["ready"])


def end_group(process: subprocess.Popen[str]) -> None:
    """Kills the target and the children it may have; the group is its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()
