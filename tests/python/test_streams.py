# SPDX-License-Identifier: Apache-2.0
"""Standard streams, terminals and signals."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from find import Interpreter
from on_terminal import OnTerminal
from pystrobe_command import Finished, Pystrobe, kept_recording
from running import running

# What stops a recording, and the signal that the terminal makes of it.
KEYS = {"\x03": signal.SIGINT, "\x1c": signal.SIGQUIT}


def test_a_table_that_cannot_be_written_is_a_failure(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target, open("/dev/full", "w") as full:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(path))
        command = [str(pystrobe.executable), "report", str(path)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
        assert done.returncode == 1
        assert done.stderr == "pystrobe: the table: writing failed: No space left on device\n"
        # What was sampled for the table alone is kept.
        command = [str(pystrobe.executable), "attach", str(target.pid), "-d", "0.3"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
        assert done.returncode == 1
    kept_recording(Finished(1, "", done.stderr)).unlink()
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(pystrobe.executable), "report", str(path)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=30)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_reader_that_goes_away(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid), "-d", "0.5")
        assert sampler.stdout
        sampler.stdout.close()
        assert sampler.stderr
        err = sampler.stderr.read()
        assert sampler.wait(timeout=30) == 0, err
        sampler.stderr.close()
    assert "ipe" not in err


@pytest.mark.parametrize("output", ["", "-o - -f collapsed"], ids=["table", "collapsed"])
def test_head_has_its_line_and_nobody_complains(
    pystrobe: Pystrobe, newest: Interpreter, output: str
) -> None:
    """Of stacks 800 deep there are more than fit into a pipe."""
    with running(newest, "deep", "800") as target:
        attach = f"{pystrobe.executable} attach {target.pid} -d 0.5 {output}"
        command = ["bash", "-c", f"{attach} | head -n 1; echo ${{PIPESTATUS[*]}}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    line, codes = done.stdout.splitlines()
    assert "deep.py" in line
    assert codes == "0 0", done
    assert not re.search("pipe|fail|lost: it is in", done.stderr), done


STOPPING = [
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGRTMIN, signal.SIGRTMAX),
]


@pytest.mark.parametrize("number", STOPPING)
def test_signals_stop_and_report(
    pystrobe: Pystrobe, newest: Interpreter, number: signal.Signals
) -> None:
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid))
        time.sleep(0.4)
        sampler.send_signal(number)
        out, err = sampler.communicate(timeout=30)
        assert sampler.returncode == 0, (out, err)
    assert "self %" in out
    assert "Quality:" in out


def test_two_signals_at_once_are_one(pystrobe: Pystrobe, newest: Interpreter) -> None:
    """As `timeout` sends them, to the process and to its group."""
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid))
        time.sleep(0.4)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            sampler.send_signal(number)
            time.sleep(0.001)
        out, err = sampler.communicate(timeout=30)
        assert sampler.returncode == 0, (out, err)
    assert "Quality:" in out


def test_signals_of_one_stop_change_nothing_up_to_the_end(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """The last of them may come when all is done but to end."""
    with running(newest, "tower") as target:
        for _ in range(10):
            sampler = pystrobe.start("attach", str(target.pid))
            time.sleep(0.25)
            sampler.send_signal(signal.SIGTERM)
            end = time.monotonic() + 0.19
            while sampler.poll() is None and time.monotonic() < end:
                sampler.send_signal(signal.SIGINT)
                time.sleep(0.0003)
            out, err = sampler.communicate(timeout=30)
            assert sampler.returncode == 0, (out, err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_end_leaves_a_whole_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid), "-o", str(path))
        time.sleep(0.7)
        sampler.send_signal(number)
        out, err = sampler.communicate(timeout=30)
    assert sampler.returncode == 0, (out, err)
    assert "self %" in out
    report = pystrobe.succeed("report", str(path), "-o", "-", "-f", "json").out
    assert json.loads(report)["quality"]["complete"]


def test_a_file_as_big_as_files_may_be_loses_no_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        attach = f"exec {pystrobe.executable} attach {target.pid} -d 20 -r 10000 -o {path}"
        command = ["bash", "-c", f"ulimit -f 8; {attach}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done
    assert "File too large" in done.stderr


@pytest.mark.parametrize("key", KEYS)
def test_progress_and_a_stop_on_a_terminal(
    pystrobe: Pystrobe, newest: Interpreter, key: str
) -> None:
    with running(newest, "tower") as target:
        shown = OnTerminal(str(pystrobe.executable), "attach", str(target.pid))
        shown.read_until(r"0:0[1-9]  [\d,]+ samples  [\d,.]+ Hz")
        shown.type(key)
        assert shown.finish() == 0, shown.text
    assert "self %" in shown.text
    assert "\x1b[1m" in shown.text


def test_no_progress_where_nobody_looks(pystrobe: Pystrobe, newest: Interpreter) -> None:
    """In a log each rewriting of the line would be there."""
    with running(newest, "tower") as target:
        err = pystrobe.succeed("attach", str(target.pid), "-d", "1.3").err
    assert "Ctrl-C stops earlier" in err
    assert not re.search(r"[\r\x1b]|[\d,]+ samples  ", err), err


@pytest.mark.parametrize("output", ["a.html", "a.strobe"])
@pytest.mark.parametrize("key", KEYS)
def test_a_second_stop_gives_up_and_keeps_the_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, key: str, output: str
) -> None:
    """The report goes into a pipe that nobody reads, so the first key cannot end it."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with running(newest, "tower") as target:
        shown = OnTerminal(
            *(str(pystrobe.executable), "attach", str(target.pid), "-r", "10000"),
            *("-o", str(pipe), "-o", str(tmp_path / output)),
        )
        shown.read_until(r"0:0[1-9]  ")
        shown.type(key)
        shown.read_until("Quality:")
        time.sleep(0.5)
        shown.type(key)
        code = shown.finish()
    os.close(reader)
    assert code == 128 + KEYS[key], shown.text
    match = re.search(r"what was recorded is in (\S+\.strobe)", shown.text)
    assert match, shown.text
    try:
        assert "self %" in pystrobe.succeed("report", match[1]).out
    finally:
        os.unlink(match[1])
    assert list(tmp_path.iterdir()) == [pipe]


def thread_named(pid: int, name: str) -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    pytest.fail(f"process {pid} has no thread {name}")


@contextmanager
def stopped(thread: int) -> Iterator[None]:
    """That one thread, by ptrace(2): PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    assert ptrace(0x4206, thread, None, None) == 0, os.strerror(ctypes.get_errno())
    assert ptrace(0x4207, thread, None, None) == 0
    os.waitpid(thread, 0x40000000)  # __WALL
    yield
    assert ptrace(17, thread, None, None) == 0


def test_a_second_stop_leaves_out_the_native_frames_that_are_left(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        shown = OnTerminal(
            *(str(pystrobe.executable), "attach", str(target.pid), "--native", "-o", str(path))
        )
        shown.read_until("0:01  ")
        with stopped(thread_named(shown.pid, "unwinder")):
            shown.read_until("0:0[2-9]  ")
            shown.type("\x03")
            shown.read_until("stacks are left to find")
            time.sleep(0.3)
            shown.type("\x03")
            time.sleep(0.5)
        code = shown.finish()
    assert code == 0, shown.text
    assert "self %" in shown.text
    assert "native frames cut in" in " ".join(shown.text.split())
    report = pystrobe.succeed("report", str(path), "-o", "-", "-f", "json").out
    assert json.loads(report)["quality"]["complete"]
