# SPDX-License-Identifier: Apache-2.0
"""What cannot be a target is refused in words that say what it is, and what helps."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from find import Interpreter
from probing import (
    EXITED,
    NOT_FOUND,
    NOT_PYTHON,
    PERMISSION,
    UNSUPPORTED,
    probe,
    probe_path,
    until,
)
from pystrobe_command import Pystrobe
from running import running
from sandbox import forbid_reading

pytestmark = pytest.mark.beside_others

NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextmanager
def started(*command: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**31 - 1])
def test_there_is_no_such_process(pid: int) -> None:
    seen = probe(pid)
    assert seen["error"] == NOT_FOUND
    assert str(pid) in seen["message"]


def test_a_program_that_is_no_python_is_named() -> None:
    with started("sleep", "60") as target:
        until(lambda: "sleep" in os.readlink(f"/proc/{target.pid}/exe"))
        seen = probe(target.pid)
        assert seen["error"] == NOT_PYTHON
        assert os.readlink(f"/proc/{target.pid}/exe") in seen["message"]


def test_of_a_shell_its_children_are_pointed_to() -> None:
    with started("sh", "-c", "sleep 60; true") as target:
        until(lambda: "sh" in os.readlink(f"/proc/{target.pid}/exe"))
        seen = probe(target.pid)
        assert seen["error"] == NOT_PYTHON
        assert f"pgrep -P {target.pid}" in seen["hint"]


def test_pypy_is_named(tmp_path: Path) -> None:
    executable = tmp_path / "pypy3.10"
    shutil.copy(shutil.which("sleep") or "", executable)
    with started(str(executable), "60") as target:
        until(lambda: "pypy" in os.readlink(f"/proc/{target.pid}/exe"))
        seen = probe(target.pid)
        assert seen["error"] == NOT_PYTHON
        assert "PyPy" in seen["message"]


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_pypy_is_named_by_its_library(tmp_path: Path) -> None:
    """Its executable is small and may have any name."""
    library, executable = tmp_path / "libpypy3-c.so", tmp_path / "service"
    sources = {library: "int rpython_startup_code;", executable: "int main() { pause(); }"}
    options = {
        library: ["-shared", "-fPIC"],
        executable: ["-include", "unistd.h", "-Wl,--no-as-needed", str(library)],
    }
    for file, source in sources.items():
        command = ["cc", "-o", str(file), "-xc", "-", "-xnone", *options[file]]
        subprocess.run(command, input=source, text=True, check=True)
    with started(str(executable)) as target:
        maps = Path(f"/proc/{target.pid}/maps")
        until(lambda: str(library) in maps.read_text())
        seen = probe(target.pid)
        assert seen["error"] == NOT_PYTHON
        assert f"runs PyPy ({library})" in seen["message"]
        assert "CPython" in seen["hint"]


def test_a_python_too_old_is_named_with_its_version() -> None:
    old = [
        path
        for version in ("2.7", "3.6", "3.7")
        for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
    ]
    if not old:
        pytest.skip("no Python older than 3.8 here")
    for path in old:
        with started(str(path), "-c", "import time; time.sleep(60)") as target:
            until(lambda pid=target.pid: probe(pid)["error"] == UNSUPPORTED)
            seen = probe(target.pid)
            assert path.parent.parent.name.rsplit(".", 1)[0] in seen["message"]


def test_a_zombie() -> None:
    process = subprocess.Popen(["true"])
    until(lambda: state_of(process.pid) == "Z")
    seen = probe(process.pid)
    process.wait()
    assert seen["error"] == NOT_PYTHON
    assert "zombie" in seen["message"]


def test_a_kernel_thread() -> None:
    if not Path("/proc/2/exe").exists() and Path("/proc/2/stat").exists():
        seen = probe(2)
        assert seen["error"] == NOT_PYTHON
        assert "kernel" in seen["message"]
    else:
        pytest.skip("no kernel threads to be seen from here")


def test_a_thread_is_led_back_to_its_process(newest: Interpreter) -> None:
    with running(newest, "census") as target:
        thread = max(target.ready["ids"])
        seen = probe(thread)
        assert seen["error"] == NOT_FOUND
        assert f"of process {target.pid}" in seen["message"]


def _elf32(path: Path) -> None:
    """A 32-bit executable that only sleeps: pause() again and again."""
    base, size = 0x08048000, 52 + 32
    code = bytes.fromhex("b81d000000 cd80 ebf7".replace(" ", ""))  # mov eax, 29; int 80h; jmp back
    header = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + size, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    total = size + len(code)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, total, total, 5, 4096)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)


def test_a_32_bit_program(tmp_path: Path) -> None:
    executable = tmp_path / "small"
    _elf32(executable)
    try:
        process = subprocess.Popen([str(executable)])
    except OSError as error:
        pytest.skip(f"this kernel runs no 32-bit programs: {error}")
    try:
        until(lambda: os.readlink(f"/proc/{process.pid}/exe") == str(executable))
        seen = probe(process.pid)
        assert seen["error"] == NOT_PYTHON
        assert "32-bit" in seen["message"]
    finally:
        process.kill()
        process.wait()


@ROOT_ONLY
def test_of_another_user_it_says_who_and_how(newest: Interpreter, tmp_path: Path) -> None:
    tool = _for_everybody(tmp_path)
    with running(newest, "census") as target:
        seen = _probe_as(NOBODY, tool, target.pid)
    assert seen["error"] == PERMISSION
    assert "root (0)" in seen["message"]
    assert f"({NOBODY})" in seen["message"]
    assert "sudo" in seen["hint"]


@ROOT_ONLY
def test_the_proc_of_another_pid_namespace_is_no_help(newest: Interpreter) -> None:
    with running(newest, "census") as target:
        command = ["unshare", "--pid", "--fork", str(probe_path()), str(target.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    seen = json.loads(done.stdout)
    assert seen["error"] == PERMISSION
    assert "/proc is of another pid namespace" in seen["message"]
    assert "mount -t proc" in seen["hint"]


@ROOT_ONLY
@pytest.mark.parametrize(
    ("enter", "seen"),
    [
        (["--pid", "--fork"], "/proc is of another pid namespace"),
        (["--mount"], "/proc is not mounted here"),
    ],
)
def test_a_proc_that_tells_nothing_is_all_that_doctor_says(
    pystrobe: Pystrobe, enter: list[str], seen: str
) -> None:
    hide = "mount -t tmpfs none /proc; " if "--mount" in enter else ""
    command = ["unshare", *enter, "sh", "-c", f'{hide}exec "$0" doctor', str(pystrobe.executable)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert seen in done.stdout
    assert "mount -t proc" in done.stdout
    assert "CAP_SYS_PTRACE" not in done.stdout


@ROOT_ONLY
def test_one_that_protects_itself(tmp_path: Path) -> None:
    tool = _for_everybody(tmp_path)
    script = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print(flush=True); time.sleep(60)"
    options = {"user": NOBODY, "stdout": subprocess.PIPE, "cwd": "/"}
    with started("/usr/bin/python3", "-c", script, **options) as target:
        assert target.stdout
        target.stdout.readline()
        seen = _probe_as(NOBODY, tool, target.pid)
        target.stdout.close()
    assert seen["error"] == PERMISSION
    assert "not dumpable" in seen["message"]


@ROOT_ONLY
def test_the_same_user_needs_no_privilege(tmp_path: Path) -> None:
    yama = Path("/proc/sys/kernel/yama/ptrace_scope")
    if yama.exists() and yama.read_text().strip() != "0":
        pytest.skip("Yama forbids it here")
    tool = _for_everybody(tmp_path)
    script = "import time; print(flush=True); time.sleep(60)"
    options = {"user": NOBODY, "stdout": subprocess.PIPE, "cwd": "/"}
    with started("/usr/bin/python3", "-c", script, **options) as target:
        assert target.stdout
        target.stdout.readline()
        seen = _probe_as(NOBODY, tool, target.pid)
        target.stdout.close()
    assert [thread["tid"] for thread in seen["threads"]] == [target.pid]


@ROOT_ONLY
def test_a_sandbox_around_the_sampler_is_named(newest: Interpreter) -> None:
    with running(newest, "census") as target:
        seen = probe(target.pid, preexec_fn=forbid_reading)
    assert seen["error"] == PERMISSION
    assert "process_vm_readv" in seen["message"]
    assert "seccomp" in seen["message"]


def _for_everybody(directory: Path) -> Path:
    """A copy of the probe where every user may run it."""
    tool = Path("/tmp") / f"target_probe-{os.getpid()}-{directory.name}"
    shutil.copy(probe_path(), tool)
    tool.chmod(0o755)
    return tool


def _probe_as(user: int, tool: Path, pid: int) -> dict[str, object]:
    try:
        finished = subprocess.run(
            [str(tool), str(pid)], capture_output=True, text=True, user=user, cwd="/", timeout=60
        )
        return dict(json.loads(finished.stdout))
    finally:
        tool.unlink()


def test_ending_or_executing_at_any_moment_is_an_answer_not_a_crash() -> None:
    """Short-lived processes, probed at whatever stage they are in."""
    script = "import os, sys\nif sys.argv[1:]: os.execv(sys.executable, [sys.executable, '-c', ''])"
    answers = set()
    for turn in range(60):
        arguments = ["again"] if turn % 2 else []
        process = subprocess.Popen([sys.executable, "-S", "-c", script, *arguments])
        for _ in range(4):
            answers.add(probe(process.pid).get("error"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert answers <= {None, NOT_PYTHON, EXITED}, answers
