# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: refusals, exit codes, signals, files, rights of others."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from find import Interpreter
from pystrobe_command import Finished, Pystrobe
from running import running

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def refused(pystrobe: Pystrobe, *arguments: str) -> Finished:
    """Runs what must be refused as wrong usage: one line of what, then an indented cure."""
    finished = pystrobe.run(*arguments)
    assert finished.code == 2, finished
    assert finished.out == ""
    lines = finished.err.splitlines()
    assert lines[0].startswith("pystrobe: "), finished
    assert len(lines) > 1
    assert all(line.startswith("  ") for line in lines[1:]), finished
    return finished


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["attach"], "process id"),
        (["attach", "python"], "'python'"),
        (["attach", "0"], "'0'"),
        (["attach", "1", "-r", "0"], "'0'"),
        (["attach", "1", "-r", "-3"], "'-3'"),
        (["attach", "1", "-r", "1e9"], "'1e9'"),
        (["attach", "1", "-r", "nan"], "'nan'"),
        (["attach", "1", "-d", "0"], "'0'"),
        (["attach", "1", "--max-overhead", "2"], "'2'"),
        (["attach", "1", "--pause", "none", "--max-overhead", "1%"], "1%"),
        (["attach", "1", "--unit", "us"], "us"),
        (["attach", "1", "-o", "x.what"], "x.what"),
        (["attach", "1", "--what"], "'--what'"),
        (["report", "x.strobe", "--since", "3", "--until", "2"], "3"),
        (["run"], "program"),
        (["what"], "'what'"),
    ],
)
def test_wrong_usage(pystrobe: Pystrobe, arguments: list[str], seen: str) -> None:
    assert seen in refused(pystrobe, *arguments).err


@pytest.mark.parametrize("verb", [(), ("attach",), ("run",), ("dump",), ("report",), ("doctor",)])
def test_help(pystrobe: Pystrobe, verb: tuple[str, ...]) -> None:
    text = pystrobe.succeed(*verb, "--help").out
    assert "Usage: pystrobe " in text
    assert "Examples:" in text


def test_needs_no_library_but_glibc(pystrobe: Pystrobe) -> None:
    listed = subprocess.run(
        ["readelf", "-d", str(pystrobe.executable)], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", listed))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_no_such_process(pystrobe: Pystrobe) -> None:
    for verb in ("attach", "dump"):
        finished = pystrobe.run(verb, str(2**22 + 1))
        assert finished.code == 1, finished
        assert str(2**22 + 1) in finished.err


def test_not_python(pystrobe: Pystrobe) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            finished = pystrobe.run("attach", str(process.pid))
        finally:
            process.kill()
    assert finished.code == 1, finished
    assert "sleep" in finished.err


# --- files


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


def kept_recording(finished: Finished) -> Path:
    match = re.search(r"nothing recorded is lost: it is in (\S+\.strobe)", finished.err)
    assert match, finished
    return Path(match[1])


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
        kept = kept_recording(finished)
        try:
            report = json.loads(pystrobe.succeed("report", str(kept), "-f", "json").out)
        finally:
            kept.unlink()
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


def strace(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_sampling_that_never_began_leaves_files_as_they_were(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    """No CPU can be entered, so that preemption is impossible, which shows after attaching."""
    old, new, page = tmp_path / "old.strobe", tmp_path / "new.strobe", tmp_path / "new.html"
    old.write_text("precious")
    inject = ("-e", "inject=sched_setaffinity:error=EINVAL")
    for output in (old, new, page):
        with running(newest, "tower") as target:
            arguments = ("attach", str(target.pid), "-d", "1", "--pause", "preempt", "--force")
            done = strace(*inject, str(pystrobe.executable), *arguments, "-o", str(output))
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
    kept = kept_recording(finished)
    try:
        report = json.loads(pystrobe.succeed("report", str(kept), "-f", "json").out)
    finally:
        kept.unlink()
    assert report["quality"]["complete"]


def test_giving_up_while_attaching_leaves_no_file(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    output = tmp_path / "x.strobe"
    with running(newest, "tower") as target:
        # Held where it reads the target for the first time.
        inject = "inject=process_vm_readv:delay_enter=3000000:when=1"
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
            os.kill(int(children), signal.SIGTERM)
            _, err = tracer.communicate(timeout=30)
    assert "gave up; nothing was recorded" in err
    assert not output.exists()


# --- streams and signals


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_and_report(
    pystrobe: Pystrobe, newest: Interpreter, number: signal.Signals
) -> None:
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid))
        time.sleep(0.7)
        sampler.send_signal(number)
        out, err = sampler.communicate(timeout=30)
        assert sampler.returncode == 0, (out, err)
    assert "self %" in out
    assert "Quality:" in out


class OnTerminal:
    """A command on a terminal of its own, which it also gets its Ctrl-C from."""

    def __init__(self, *command: str, columns: int = 100) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.environ.pop("NO_COLOR", None)
            os.execvp(command[0], command)
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.text = ""

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read_until(self, pattern: str, timeout: float = 30) -> str:
        """Reads on until the text since the start matches."""
        deadline = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self.master], [], [], left)[0]
            assert ready, f"no {pattern!r} in {self.text!r}"
            piece = self._read()
            assert piece, f"ended without {pattern!r}: {self.text!r}"
            self.text += piece
        return self.text

    def finish(self) -> int:
        while piece := self._read():
            self.text += piece
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> str:
        try:
            return os.read(self.master, 65536).decode(errors="replace")
        except OSError:  # the other side is closed
            return ""


def test_progress_and_ctrl_c_on_a_terminal(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        shown = OnTerminal(str(pystrobe.executable), "attach", str(target.pid))
        shown.read_until(r"0:0[1-9]  [\d,]+ samples  [\d,.]+ Hz")
        shown.type("\x03")
        assert shown.finish() == 0, shown.text
    assert "self %" in shown.text
    assert "\x1b[1m" in shown.text


def test_ctrl_c_twice_gives_up_and_keeps_the_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    """The report goes into a pipe that nobody reads, so the first Ctrl-C cannot end it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with running(newest, "tower") as target:
        shown = OnTerminal(
            *(str(pystrobe.executable), "attach", str(target.pid), "-r", "10000"),
            *("-o", str(pipe), "-f", "json"),
        )
        shown.read_until(r"0:0[2-9]  ")
        shown.type("\x03")
        shown.read_until("Quality:")
        time.sleep(0.5)
        shown.type("\x03")
        code = shown.finish()
    os.close(reader)
    assert code == 128 + signal.SIGINT, shown.text
    match = re.search(r"what was recorded is in (\S+\.strobe)", shown.text)
    assert match, shown.text
    try:
        assert "self %" in pystrobe.succeed("report", match[1]).out
    finally:
        os.unlink(match[1])


# --- run


def run_python(pystrobe: Pystrobe, newest: Interpreter, *words: str, **options: object) -> Finished:
    return pystrobe.run("run", "--python", newest.command()[0], *words, **options)  # type: ignore[arg-type]


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    return str(path)


BUSY = "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass\n"


def test_run_reports_on_stderr(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = script(tmp_path, BUSY + "import sys; print('out', *sys.argv[1:]); sys.exit(3)\n")
    finished = run_python(pystrobe, newest, path, "-r", "--top")
    assert finished.code == 3, finished
    assert finished.out == "out -r --top\n"
    assert "self %" in finished.err
    assert "script.py" in finished.err


def test_run_module(pystrobe: Pystrobe, newest: Interpreter) -> None:
    finished = run_python(pystrobe, newest, "-m", "timeit", "-n", "1", "pass")
    assert finished.code == 0, finished
    assert "best of" in finished.out


def test_run_passes_stdin(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = script(tmp_path, "import sys; print(sys.stdin.read().upper())\n" + BUSY)
    done = subprocess.run(
        [str(pystrobe.executable), "run", "--python", newest.command()[0], path],
        input="hello",
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0
    assert done.stdout == "HELLO\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_run_tells_the_signal(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, number: signal.Signals
) -> None:
    text = BUSY + f"import os; os.kill(os.getpid(), {int(number)}); time.sleep(5)\n"
    finished = run_python(pystrobe, newest, script(tmp_path, text))
    assert finished.code == 128 + number, finished
    assert "self %" in finished.err


def test_run_forwards_sigterm(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    text = "import signal, sys, time\n"
    text += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    text += "print('ready', flush=True)\nend = time.monotonic() + 20\n"
    text += "while time.monotonic() < end: pass\n"
    command = ("run", "--python", newest.command()[0], script(tmp_path, text))
    sampler = pystrobe.start(*command)
    assert sampler.stdout
    assert sampler.stdout.readline() == "ready\n"
    time.sleep(0.5)
    sampler.send_signal(signal.SIGTERM)
    _, err = sampler.communicate(timeout=30)
    assert sampler.returncode == 7, err
    assert "self %" in err


def test_run_leaves_ctrl_c_to_the_program(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    text = "import sys, time\nprint('ready', flush=True)\n"
    # Not an empty loop: 3.11 compiles one so that no handler covers it.
    text += "try:\n    while True: sum(range(9))\n"
    text += "except KeyboardInterrupt:\n    print('caught')\n"
    text += "end = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\nsys.exit(5)\n"
    shown = OnTerminal(
        *(str(pystrobe.executable), "run", "--python", newest.command()[0]),
        script(tmp_path, text),
    )
    shown.read_until("ready")
    time.sleep(0.5)
    shown.type("\x03")
    assert shown.finish() == 5, shown.text
    assert "caught" in shown.text
    assert "self %" in shown.text


def test_run_what_is_not_python(pystrobe: Pystrobe) -> None:
    finished = pystrobe.run("run", "--", "sh", "-c", "sleep 0.2; exit 4")
    assert finished.code == 4
    assert "nothing was sampled" in finished.err


def test_run_tells_the_status_where_ended_children_are_ignored(pystrobe: Pystrobe) -> None:
    with subprocess.Popen(
        [str(pystrobe.executable), "run", "--", "sh", "-c", "exit 3"],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    ) as process:
        assert process.wait(timeout=30) == 3


def without_threads(pystrobe: Pystrobe, *arguments: str) -> Finished:
    """A limit on the stack is also the size of a thread's, and this one fits nowhere."""
    size = 1 << 50
    done = subprocess.run(
        [str(pystrobe.executable), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (size, size)),
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def test_run_goes_on_unsampled_where_no_thread_may_start(pystrobe: Pystrobe) -> None:
    finished = without_threads(pystrobe, "run", "--", "sh", "-c", "sleep 0.2; exit 4")
    assert finished.code == 4, finished
    assert "the program runs, but is not sampled: cannot start a thread" in finished.err
    assert "ulimit -u" in finished.err


def test_run_forwards_nothing_to_a_program_that_is_reaped(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    """Its pid may be another process' by then. strace holds us where that is so."""
    log = tmp_path / "calls"
    tracing = ("-e", "trace=wait4,kill", "-e", "inject=wait4:delay_exit=2000000", "-o", str(log))
    command = (*tracing, str(pystrobe.executable), "run", "--", "sh", "-c", "exit 4")
    with subprocess.Popen(
        ["strace", *command], stderr=subprocess.DEVNULL, start_new_session=True
    ) as strace:
        deadline = time.monotonic() + 20
        while not (log.exists() and "wait4" in log.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (traced,) = Path(f"/proc/{strace.pid}/task/{strace.pid}/children").read_text().split()
        os.kill(int(traced), signal.SIGTERM)
        assert strace.wait(timeout=30) == 4
    assert "SIGTERM" in log.read_text()
    assert "kill(" not in log.read_text()


def test_run_very_short_program(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    finished = run_python(pystrobe, newest, script(tmp_path, "pass\n"))
    assert finished.code == 0, finished


def test_run_what_is_not_there(pystrobe: Pystrobe, tmp_path: Path) -> None:
    finished = pystrobe.run("run", "--", "no-such-command-anywhere")
    assert finished.code == 127
    assert "no-such-command-anywhere" in finished.err
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert pystrobe.run("run", "--", str(plain)).code == 126
    finished = pystrobe.run("run", "no-such-script.py")
    assert finished.code == 1
    assert "no-such-script.py" in finished.err


@ROOT_ONLY
def test_under_sudo_program_and_files_are_the_users(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    nobody = 65534
    command = ["/usr/bin/python3"] if os.path.exists("/usr/bin/python3") else newest.command()
    text = "import os; print(os.getuid(), os.getgid(), sorted(os.getgroups()))"
    arguments = ["--", command[0], "-c", text + "\n" + BUSY]
    environment = {**os.environ, "SUDO_UID": str(nobody), "SUDO_GID": str(nobody)}
    output = tmp_path / "x.json"
    finished = pystrobe.run("run", "-o", str(output), *arguments, env=environment)
    assert finished.code == 0, finished
    assert finished.out == f"{nobody} {nobody} [{nobody}]\n"
    assert output.stat().st_uid == nobody
    assert output.stat().st_gid == nobody


# --- report, dump, doctor


def test_report_refuses_what_is_no_recording(pystrobe: Pystrobe, tmp_path: Path) -> None:
    assert pystrobe.run("report", str(tmp_path / "none.strobe")).code == 1
    for name, data in {"empty": b"", "text": b"hello\n" * 100, "binary": bytes(4096)}.items():
        path = tmp_path / f"{name}.strobe"
        path.write_bytes(data)
        finished = pystrobe.run("report", str(path))
        assert finished.code == 1, finished
        assert str(path) in finished.err


def test_table_follows_the_width(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.5", "-q", "-o", str(path))
    for columns in (60, 80, 200):
        shown = OnTerminal(str(pystrobe.executable), "report", str(path), columns=columns)
        assert shown.finish() == 0
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown.text)
        assert max(len(line) for line in plain.splitlines()) <= columns
    plain = pystrobe.succeed("report", str(path)).out
    assert "\x1b" not in plain
    forced = pystrobe.succeed("report", str(path), env={**os.environ, "CLICOLOR_FORCE": "1"}).out
    assert "\x1b[1m" in forced


def test_dump_text(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "threads") as target:
        finished = pystrobe.succeed("dump", str(target.pid))
        with_locals = pystrobe.succeed("dump", str(target.pid), "--locals")
    assert "most recent call first" in finished.out
    assert f'Thread {target.pid} "MainThread"' in finished.out
    assert "may be secret" in with_locals.err
    assert " = " in with_locals.out
    assert " = " not in finished.out


def test_doctor(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        finished = pystrobe.run("doctor", str(target.pid))
    assert finished.code == 0, finished
    assert pystrobe.run("doctor", str(2**22 + 1)).code == 1


def test_doctor_tells_where_no_thread_may_start(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        finished = without_threads(pystrobe, "doctor", str(target.pid))
    assert finished.code == 1, finished
    assert re.search(r"fail +CPUs shared +cannot start a thread", finished.out), finished
    assert "ulimit -u" in finished.out
