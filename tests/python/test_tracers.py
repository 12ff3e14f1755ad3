# SPDX-License-Identifier: Apache-2.0
"""A target that another program traces: a thread has one tracer at most."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from find import Interpreter
from probing import until
from pystrobe_command import Pystrobe
from running import Running, running

STRACE = ("strace", "-qq", "-o", "/dev/null", "-p", "{}")
GDB = ("gdb", "-nx", "-batch", "-p", "{}", "-ex", "shell sleep 60")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@contextmanager
def traced_by(tracer: tuple[str, ...], target: Running) -> Iterator[int]:
    """Yields the pid of the tracer."""
    if not shutil.which(tracer[0]):
        pytest.skip(f"needs {tracer[0]}")
    with subprocess.Popen(
        [word.format(target.pid) for word in tracer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            deadline = time.monotonic() + 20
            while target.status("TracerPid") == "0":
                assert time.monotonic() < deadline
                time.sleep(0.02)
            time.sleep(0.5)
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("tracer", [STRACE, GDB], ids=lambda tracer: tracer[0])
def test_ptrace_is_refused_naming_the_tracer(
    pystrobe: Pystrobe, newest: Interpreter, tracer: tuple[str, ...]
) -> None:
    with running(newest, "tower") as target, traced_by(tracer, target) as pid:
        for verb in (("attach", str(target.pid), "-d", "0.3"), ("dump", str(target.pid))):
            finished = pystrobe.run(*verb, "--pause", "ptrace")
            assert finished.code == 1, finished
            assert f"{tracer[0]} (process {pid}) traces it" in finished.err
            assert f"End {tracer[0]}" in finished.err
        # Other ways of pausing need no tracing.
        for verb in (("attach", str(target.pid), "-d", "0.3"), ("dump", str(target.pid))):
            pystrobe.succeed(*verb)
        seen = pystrobe.run("doctor", str(target.pid)).out
        assert f"{tracer[0]} (process {pid}) traces it" in seen


def test_two_samplers_by_ptrace_do_not_refuse_each_other(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "tower") as target:
        attach = ("attach", str(target.pid), "--pause", "ptrace")
        first = pystrobe.start(*attach, "-r", "1000")
        time.sleep(0.5)
        pystrobe.succeed(*attach, "-d", "0.3")
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=30)
        assert first.returncode == 0, err


def test_a_stopped_target_is_said_to_be(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        attach = ("attach", str(target.pid), "-d", "0.3")
        assert "is stopped" not in pystrobe.succeed(*attach).err
        with traced_by(GDB, target) as pid:
            finished = pystrobe.succeed(*attach)
            assert f"is stopped by gdb (process {pid})" in finished.err
        os.kill(target.pid, signal.SIGSTOP)
        time.sleep(0.1)
        finished = pystrobe.succeed(*attach)
        assert f"to go on: kill -CONT {target.pid}" in finished.err


def test_ctrl_z_leaves_the_target_running(pystrobe: Pystrobe, newest: Interpreter) -> None:
    """The kernel stops all threads of the sampler at once, whatever they are at."""
    with running(newest, "tower") as target:
        for _ in range(8):
            # A process group of its own, as a shell makes it: only such a one can be stopped so.
            sampler = pystrobe.start(
                *("attach", str(target.pid), "-r", "1000", "--pause", "ptrace"), process_group=0
            )
            try:
                time.sleep(0.3)
                os.kill(sampler.pid, signal.SIGTSTP)
                until(lambda pid=sampler.pid: state_of(pid) == "T")
                assert target.status("State")[0] != "t"
            finally:
                sampler.kill()
                sampler.communicate()
