# SPDX-License-Identifier: Apache-2.0
"""Files that a command writes: refused, streamed, kept, never lost."""

from __future__ import annotations

import json
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
from on_terminal import OnTerminal
from pystrobe_command import Pystrobe, kept_recording, report_of_kept
from running import apart, running

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NEEDS_STRACE = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")


def test_existing_output_is_refused_before_sampling(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    old = tmp_path / "old.html"
    old.write_text("precious")
    with running(newest, "tower") as target:
        finished = pystrobe.run("attach", str(target.pid), "-o", str(old), timeout=10)
        assert finished.code == 1, finished
        assert "--force" in finished.err
        assert old.read_text() == "precious"
        # A refusal of the second output must not leave the first one behind.
        first = tmp_path / "first.json"
        finished = pystrobe.run("attach", str(target.pid), "-o", str(first), "-o", str(old))
        assert finished.code == 1
        assert not first.exists()
        arguments = ("-d", "0.3", "-o", str(old), "-f", "json", "--force")
        pystrobe.succeed("attach", str(target.pid), *arguments)
    assert json.loads(old.read_text())


def test_missing_directory(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    finished = pystrobe.run("attach", str(os.getpid()), "-o", str(tmp_path / "no" / "x.json"))
    assert finished.code == 1
    assert "mkdir -p" in finished.err


def test_nothing_is_left_when_attaching_fails(pystrobe: Pystrobe, tmp_path: Path) -> None:
    finished = pystrobe.run("attach", str(2**22 + 1), "-o", str(tmp_path / "x.strobe"))
    assert finished.code == 1
    assert list(tmp_path.iterdir()) == []


def test_every_format_at_once(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    names = ["a.strobe", "a.speedscope.json", "a.pb.gz", "a.collapsed", "a.json"]
    outputs = [word for name in names for word in ("-o", str(tmp_path / name))]
    with running(newest, "tower") as target:
        finished = pystrobe.succeed("attach", str(target.pid), "-d", "0.5", *outputs)
    for name in names:
        assert (tmp_path / name).stat().st_size > 0
        assert f"wrote {tmp_path / name}" in finished.err
    assert "self %" in finished.out
    assert "Quality:" in finished.out


def test_a_format_on_standard_output(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        finished = pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-f", "json")
    assert json.loads(finished.out)
    assert "Quality:" in finished.err


def test_binary_is_not_for_a_terminal(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(path))
    shown = OnTerminal(str(pystrobe.executable), "report", str(path), "-f", "pprof")
    assert shown.finish() == 2
    assert "binary" in shown.text


def test_closed_standard_streams(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    """No file of ours may take the place of a stream that the caller closed."""
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        command = f"exec {pystrobe.executable} attach {target.pid} -d 0.3 -o {path} <&- >&- 2>&-"
        assert subprocess.run(["sh", "-c", command], timeout=30).returncode == 0
    assert "self %" in pystrobe.succeed("report", str(path)).out


def test_quiet(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        finished = pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(path))
    assert finished.out == finished.err == ""
    assert path.stat().st_size > 0


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@ROOT_ONLY
def test_a_full_disk_loses_no_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "small", "16k") as disk, running(newest, "tower") as target:
        started = time.monotonic()
        finished = pystrobe.run(
            *("attach", str(target.pid), "-d", "20", "-r", "10000"),
            *("-o", str(disk / "x.strobe")),
            timeout=60,
        )
        assert time.monotonic() - started < 15, "a full disk ends the sampling"
        assert finished.code == 1, finished
        assert "No space left" in finished.err
        assert "self %" in finished.out
        report = report_of_kept(pystrobe, finished)
    assert report["quality"]["complete"]
    # All of it is there, not just what had reached the disk.
    assert report["total"]["wall_ns"] == pytest.approx(report["quality"]["duration_ns"], rel=0.02)


@ROOT_ONLY
def test_a_report_that_does_not_fit_keeps_the_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "small", "4k") as disk, running(newest, "tower") as target:
        (disk / "filler").write_bytes(bytes(4096))
        finished = pystrobe.run("attach", str(target.pid), "-d", "0.5", "-o", str(disk / "x.json"))
        assert finished.code == 1, finished
        assert not (disk / "x.json").exists()
    kept = kept_recording(finished)
    try:
        assert "self %" in pystrobe.succeed("report", str(kept)).out
    finally:
        kept.unlink()


def test_a_recording_is_not_kept_next_to_a_device(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "tower") as target:
        arguments = ("-d", "0.3", "-f", "html", "-o", "/dev/full")
        finished = pystrobe.run("attach", str(target.pid), *arguments)
    assert finished.code == 1, finished
    kept = kept_recording(finished)
    kept.unlink()
    assert kept.parent != Path("/dev")


def test_a_thread_that_is_not_there_keeps_the_recording(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "tower") as target:
        finished = pystrobe.run("attach", str(target.pid), "-d", "0.3", "--thread", "nobody")
    assert finished.code == 1, finished
    kept = kept_recording(finished)
    try:
        assert "self %" in pystrobe.succeed("report", str(kept)).out
    finally:
        kept.unlink()


@NEEDS_STRACE
def test_a_sampling_that_never_began_leaves_files_as_they_were(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    """No CPU can be entered, so that preemption is impossible, which shows after attaching."""
    target_cpu, own_cpu = apart()
    if own_cpu is None:
        pytest.skip("needs a CPU beside the target's, which preemption is for")
    old, new, page = tmp_path / "old.strobe", tmp_path / "new.strobe", tmp_path / "new.html"
    old.write_text("precious")
    tracer = ("taskset", "-c", str(own_cpu), "strace", "-f", "-qq", "-o", "/dev/null")
    inject = ("-e", "inject=sched_setaffinity:error=EINVAL")
    for output in (old, new, page):
        with running(newest, "tower", cpu=target_cpu) as target:
            attach = ("attach", str(target.pid), "-d", "1", "--pause", "preempt", "--force")
            done = subprocess.run(
                [*tracer, *inject, str(pystrobe.executable), *attach, "-o", str(output)],
                capture_output=True,
                text=True,
                timeout=60,
            )
        assert done.returncode == 1, done
        assert "pausing by preemption" in done.stderr
        assert "nothing recorded is lost" not in done.stderr
        assert "wrote" not in done.stderr
    assert old.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [old]


@ROOT_ONLY
def test_a_disk_that_is_full_from_the_start_loses_no_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "small", "4k") as disk, running(newest, "tower") as target:
        (disk / "filler").write_bytes(bytes(4096))
        path = disk / "x.strobe"
        finished = pystrobe.run("attach", str(target.pid), "-d", "20", "-o", str(path))
        assert finished.code == 1, finished
        assert "No space left" in finished.err
        assert not path.exists()
    report = report_of_kept(pystrobe, finished)
    assert report["quality"]["complete"]


@NEEDS_STRACE
def test_giving_up_while_attaching_leaves_no_file(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    output = tmp_path / "x.strobe"
    with running(newest, "tower") as target:
        # Held a second wherever it reads the target; a signal arrives when such a second is over.
        inject = "inject=process_vm_readv:delay_enter=1000000:when=1+"
        command = (str(pystrobe.executable), "attach", str(target.pid), "-o", str(output))
        with subprocess.Popen(
            ["strace", "-o", "/dev/null", "-e", inject, *command],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as tracer:
            deadline = time.monotonic() + 20
            while not output.exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text()
            os.kill(int(children), signal.SIGINT)
            time.sleep(1.5)
            os.kill(int(children), signal.SIGTERM)
            _, err = tracer.communicate(timeout=30)
    assert "gave up; nothing was recorded" in err
    assert not output.exists()
