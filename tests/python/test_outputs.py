# SPDX-License-Identifier: Apache-2.0
"""Files that a command writes: refused, streamed, kept, never lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from find import Interpreter
from on_terminal import OnTerminal
from pystrobe_command import Finished, Pystrobe, kept_recording, report_of_kept
from running import apart, running

pytestmark = pytest.mark.beside_others

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
    other = tmp_path / "a.html"
    recording = str(tmp_path / "a.strobe")
    told = pystrobe.succeed("report", recording, "-f", "collapsed", "-o", str(other)).err
    assert f"wrote {other} as collapsed" in told
    assert other.read_text() == (tmp_path / "a.collapsed").read_text()


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


def test_a_closed_standard_output_loses_nothing(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"

    def closed(*arguments: str) -> Finished:
        command = ["sh", "-c", 'exec "$0" "$@" >&-', str(pystrobe.executable), *arguments]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=30)
        return Finished(done.returncode, "", done.stderr)

    with running(newest, "tower") as target:
        attach = ("attach", str(target.pid), "-d", "0.3")
        finished = closed(*attach, "-f", "json")
        assert finished.code == 1, finished
        assert "cannot write json to standard output: it is closed" in finished.err
        assert "sampling" not in finished.err, "refused before anything is recorded"
        # The table was all there was to be.
        finished = closed(*attach)
        assert finished.code == 1, finished
        assert "the table: writing failed: Bad file descriptor" in finished.err
        assert report_of_kept(pystrobe, finished)["quality"]["complete"]
        # Here it was not.
        finished = closed(*attach, "-o", str(path))
        assert finished.code == 0, finished
        assert "Quality:" in finished.err
    assert closed("report", str(path)).code == 1
    assert closed("report", str(path), "-f", "html").code == 1
    assert closed("--version").code == 1


def test_names_of_descriptors(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(path))
    out = tmp_path / "out"
    for redirection in ("-o /dev/stdout >{}", "-o /dev/fd/1 | cat >{}", "-o >(cat >{})"):
        words = redirection.format(out)
        command = f"{pystrobe.executable} report {path} -f json {words} && sleep 0.2"
        done = subprocess.run(["bash", "-c", command], timeout=30, check=False)
        assert done.returncode == 0, redirection
        assert json.loads(out.read_text()), redirection
        out.unlink()


def test_a_pipe_that_nobody_reads_is_refused(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with running(newest, "tower") as target:
        arguments = ("-d", "0.3", "-f", "json", "-o", str(pipe))
        finished = pystrobe.run("attach", str(target.pid), *arguments, timeout=20)
        assert finished.code == 1, finished
        assert f"cannot write {pipe}: it is a pipe that nobody reads" in finished.err
        assert f"cat {pipe}" in finished.err
        with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
            time.sleep(0.3)
            pystrobe.succeed("attach", str(target.pid), *arguments)
            assert reader.stdout
            assert json.loads(reader.stdout.read())


def test_a_report_does_not_overwrite_its_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.html"  # a misleading name
    with running(newest, "tower") as target:
        arguments = ("-d", "0.3", "-f", "strobe", "-o", str(path))
        pystrobe.succeed("attach", str(target.pid), *arguments)
    before = path.read_bytes()
    finished = pystrobe.run("report", str(path), "--force", "-o", str(path))
    assert finished.code == 2, finished
    assert "is the recording itself" in finished.err
    assert path.read_bytes() == before


@pytest.mark.alone
def test_a_recording_that_is_removed_meanwhile_is_kept(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid), "-d", "1.5", "-o", str(path))
        time.sleep(1)
        path.unlink()
        out, err = sampler.communicate(timeout=30)
    finished = Finished(sampler.returncode, out, err)
    assert finished.code == 1, finished
    assert f"{path} was removed while it was written" in err
    assert report_of_kept(pystrobe, finished)["quality"]["complete"]


@pytest.mark.parametrize("name", ["a.strobe", "a.html"])
@pytest.mark.alone
def test_a_file_that_takes_the_place_of_an_output_stays(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, name: str
) -> None:
    path, other = tmp_path / name, tmp_path / "other"
    other.write_text("theirs")
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid), "-d", "1.5", "-o", str(path))
        time.sleep(1)
        other.rename(path)
        out, err = sampler.communicate(timeout=30)
    finished = Finished(sampler.returncode, out, err)
    assert finished.code == 1, finished
    assert "another file" in err
    assert path.read_text() == "theirs"
    assert report_of_kept(pystrobe, finished)["quality"]["complete"]


@NEEDS_STRACE
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1])
def test_a_report_that_is_ended_leaves_files_as_they_were(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, number: signal.Signals
) -> None:
    path, old, new = tmp_path / "a.strobe", tmp_path / "old.html", tmp_path / "new.json"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(path))
    old.write_text("precious")
    outputs = ("-o", str(old), "-o", str(new))
    report = (str(pystrobe.executable), "report", str(path), "--force", *outputs)
    # Held where the new contents are written and are not in the place of the old ones.
    tracing = ("strace", "-o", "/dev/null", "-e", "inject=dup:delay_enter=1000000")
    with subprocess.Popen(
        [*tracing, *report],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as tracer:
        deadline = time.monotonic() + 20
        while not any(one.stat().st_size > 1000 for one in tmp_path.glob("old.html.*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text()
        os.kill(int(children), number)
        assert tracer.wait(timeout=30) != 0
    assert old.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == [path, old]


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
@pytest.mark.alone
@pytest.mark.alone
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
    # All of it is there, not just what had reached the disk; but for the time of the move.
    assert report["total"]["wall_ns"] == pytest.approx(report["quality"]["duration_ns"], rel=0.1)


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


@ROOT_ONLY
def test_a_report_that_does_not_fit_leaves_old_contents(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    with small_disk(tmp_path / "small", "16k") as disk, running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(path))
        old = disk / "old.html"
        old.write_text("precious")
        finished = pystrobe.run("report", str(path), "--force", "-o", str(old))
        assert finished.code == 1, finished
        assert f"{old}: writing failed: No space left on device" in finished.err
        assert old.read_text() == "precious"
        assert list(disk.iterdir()) == [old]


@ROOT_ONLY
@pytest.mark.parametrize("reason", ["directory", "mount"])
def test_a_file_that_no_other_can_replace_is_overwritten(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, reason: str
) -> None:
    """Its directory takes no new file from us, or it is a mount point as containers have them."""
    recording = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.3", "-q", "-o", str(recording))
    with tempfile.TemporaryDirectory() as base, small_disk(Path(base) / "disk", "16M") as disk:
        Path(base).chmod(0o755)  # tmp_path is root's alone
        tool, old = Path(shutil.copy(pystrobe.executable, disk)), disk / "old.json"
        input_ = shutil.copy(recording, disk)
        old.write_text("old " * 100_000)
        nobody = 65534
        command = [str(tool), "report", str(input_), "--force", "-o", str(old)]
        if reason == "directory":
            disk.chmod(0o755)
            os.chown(old, nobody, nobody)
            subprocess.run(command, check=True, user=nobody, timeout=30)
        else:
            subprocess.run(["mount", "--bind", str(old), str(old)], check=True)
            try:
                subprocess.run(command, check=True, timeout=30)
            finally:
                subprocess.run(["umount", str(old)], check=True)
        assert json.loads(old.read_text())
        assert sorted(disk.iterdir()) == [disk / "a.strobe", old, tool]


def test_a_recording_is_not_kept_next_to_a_device(pystrobe: Pystrobe, newest: Interpreter) -> None:
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
def test_what_cannot_be_had_is_refused_and_leaves_files_as_they_were(
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
    with running(newest, "tower", cpu=target_cpu) as target:
        preempt = (str(target.pid), "--pause", "preempt")
        attach = ("attach", *preempt, "-d", "1", "--force", "-o")
        commands = [("dump", *preempt), *((*attach, str(path)) for path in (old, new, page))]
        all_done = [
            subprocess.run(
                [*tracer, *inject, str(pystrobe.executable), *command],
                capture_output=True,
                text=True,
                timeout=60,
            )
            for command in commands
        ]
    for done in all_done:
        assert done.returncode == 1, done
        assert done.stdout == ""
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
