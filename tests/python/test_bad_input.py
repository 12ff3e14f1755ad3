# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad days: each is refused with the reason, and nothing is left half done."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from find import Interpreter
from probing import until
from pystrobe_command import Finished, Pystrobe
from running import running

pytestmark = pytest.mark.beside_others


@contextmanager
def process(*command: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def refused(finished: Finished, *words: str) -> None:
    """Says why, on stderr alone, with no sign of a crash."""
    assert finished.code in (1, 2), finished
    assert finished.out == ""
    assert finished.err.startswith("pystrobe: "), finished
    for word in words:
        assert word in finished.err, finished


def unused_pid() -> int:
    with subprocess.Popen(["true"]) as ended:
        pass
    return ended.pid


@pytest.mark.parametrize("verb", ["attach", "dump"])
def test_no_such_process(pystrobe: Pystrobe, verb: str) -> None:
    pid = unused_pid()
    refused(pystrobe.run(verb, str(pid)), str(pid))


@pytest.mark.parametrize("verb", ["attach", "dump"])
@pytest.mark.parametrize("pid", ["0", "-1", "abc", "99999999999999999999", ""])
def test_no_pid_at_all(pystrobe: Pystrobe, verb: str, pid: str) -> None:
    finished = pystrobe.run(verb, "--", pid)
    assert finished.code in (1, 2), finished
    assert finished.err


@pytest.mark.parametrize("verb", ["attach", "dump"])
def test_not_python(pystrobe: Pystrobe, verb: str) -> None:
    with process("sleep", "60") as other:
        refused(pystrobe.run(verb, str(other.pid)), "sleep")


@pytest.mark.parametrize("verb", ["attach", "dump"])
def test_zombie(pystrobe: Pystrobe, verb: str) -> None:
    zombie = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    try:
        refused(pystrobe.run(verb, str(zombie.pid)), "zombie")
    finally:
        zombie.wait()


@pytest.mark.parametrize("verb", ["attach", "dump"])
def test_a_process_whose_main_thread_has_ended(pystrobe: Pystrobe, verb: str) -> None:
    script = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print(flush=True)\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"  # exit, of this thread alone
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        stat = Path(f"/proc/{process.pid}/stat")
        until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")
        refused(pystrobe.run(verb, str(process.pid)), "main thread", "others run on")
        process.kill()


@pytest.mark.parametrize("verb", ["attach", "dump"])
def test_kernel_thread(pystrobe: Pystrobe, verb: str) -> None:
    name = Path("/proc/2/comm")
    if not name.exists() or name.read_text().strip() != "kthreadd":
        pytest.skip("no kernel threads to be seen here")
    refused(pystrobe.run(verb, "2"))


def test_process_of_another_user(newest: Interpreter, tmp_path: Path) -> None:
    """Run as nobody, the sampler may not look at a process of root's."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    nobody = pwd.getpwnam("nobody")
    from pystrobe_command import find_executable

    found = find_executable()
    assert found
    executable = Path("/tmp") / f"pystrobe-of-nobody-{os.getpid()}"
    shutil.copy(found, executable)
    executable.chmod(0o755)
    try:
        with running(newest, "tower") as target:
            done = subprocess.run(
                [str(executable), "dump", str(target.pid)],
                capture_output=True,
                text=True,
                user=nobody.pw_uid,
                group=nobody.pw_gid,
                extra_groups=[],
                cwd="/",
                check=False,
            )
    finally:
        executable.unlink()
    refused(Finished(done.returncode, done.stdout, done.stderr))
    assert "root" in done.stderr or "CAP_SYS_PTRACE" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["-r", "0"],
        ["-r", "-5"],
        ["-r", "nan"],
        ["-r", "1e12"],
        ["-r", "fast"],
        ["-d", "0"],
        ["-d", "-1"],
        ["-d", "soon"],
        ["--max-overhead", "-1%"],
        ["--max-overhead", "200%"],
        ["--pause", "gently"],
        ["-f", "mp3", "-o", "x.mp3"],
        ["-o", "x.unknown"],
        ["--unit", "years"],
        ["--no-such-option"],
    ],
    ids=" ".join,
)
def test_absurd_options(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, options: list[str]
) -> None:
    with running(newest, "lifecycle", "none", "0") as target:
        arguments = ["attach", str(target.pid)]
        if "-d" not in options:
            arguments += ["-d", "1"]
        finished = pystrobe.run(*arguments, *options, cwd=tmp_path)
        assert target.alive()
    assert finished.code == 2, finished
    assert finished.err
    assert list(tmp_path.iterdir()) == []


def test_existing_output_is_kept(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    kept = tmp_path / "kept.strobe"
    kept.write_text("precious")
    with running(newest, "tower") as target:
        arguments = ["attach", str(target.pid), "-d", "0.3", "-o", str(kept)]
        refused(pystrobe.run(*arguments), "kept.strobe", "--force")
        assert kept.read_text() == "precious"
        pystrobe.succeed(*arguments, "--force")
    assert kept.read_bytes() != b"precious"


def test_output_that_cannot_be_made(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        begin = time.monotonic()
        finished = pystrobe.run(
            "attach", str(target.pid), "-d", "20", "-o", "/nonexistent/x.strobe"
        )
        assert time.monotonic() - begin < 15, "found out only after sampling"
    refused(finished, "/nonexistent")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_loses_nothing_recorded(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    """The report does not fit: the recording stays, and where it is is said."""
    with running(newest, "tower") as target:
        finished = pystrobe.run(
            *("attach", str(target.pid), "-d", "0.5", "-o", "/dev/full", "-f", "collapsed"),
            *("--force",),
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
    assert finished.code == 1, finished
    assert "/dev/full" in finished.err
    assert ".strobe" in finished.err, finished


@pytest.mark.parametrize(
    "content", [b"", b"not a recording", b"\x7fELF" + bytes(200), bytes(4096)], ids=range(4)
)
def test_foreign_recording(pystrobe: Pystrobe, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "foreign.strobe"
    file.write_bytes(content)
    refused(pystrobe.run("report", str(file)), "foreign.strobe")


def test_missing_recording(pystrobe: Pystrobe) -> None:
    """Says how to make one."""
    refused(pystrobe.run("report", "/no/a.strobe"), "/no/a.strobe", "pystrobe attach PID -o")


def test_damaged_recording(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    """Cut or flipped anywhere: what is whole is shown or the file is refused; never a crash."""
    with running(newest, "tower") as target:
        recorded = pystrobe.attach(target.pid, seconds=0.5)
    whole = recorded.path.read_bytes()
    damaged = tmp_path / "damaged.strobe"
    for at in range(0, len(whole), max(1, len(whole) // 40)):
        flipped = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        for content in (whole[:at], flipped):
            damaged.write_bytes(content)
            finished = pystrobe.run("report", str(damaged), "-f", "collapsed", "-o", "-")
            assert finished.code in (0, 1), (at, finished)


def test_closed_stdout_is_no_error(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "deep", "800") as target:
        done = subprocess.run(
            f"{pystrobe.executable} dump {target.pid} | head -n 1",
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize("verb", ["attach", "dump", "doctor"])
def test_its_own_pid_is_refused(pystrobe: Pystrobe, verb: str) -> None:
    command = f'echo $$; exec "{pystrobe.executable}" {verb} $$'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    pid, _, out = done.stdout.partition("\n")
    words = (f"process id '{pid}' is that of this pystrobe itself", "pgrep -af python", "$!")
    refused(Finished(done.returncode, out, done.stderr), *words)
