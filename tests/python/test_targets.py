# SPDX-License-Identifier: Apache-2.0
"""Interpreters are found wherever and however they run, and all their threads are listed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import all_interpreters, oracle_of
from find import Interpreter
from other_root import Contained, fill
from probing import found, ids, probe, until
from pystrobe_command import Pystrobe
from running import TARGETS, running

pytestmark = pytest.mark.beside_others

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_threads_are_listed_with_the_ids_that_python_tells(interpreter: Interpreter) -> None:
    with running(interpreter, "census") as target:
        seen = found(target.pid)
        assert ids(seen) == sorted(target.ready["ids"])
        assert seen["free_threaded"] == interpreter.free_threaded
        assert seen["version"] == interpreter.version
        assert seen["still_there"]


def test_many_threads(interpreter: Interpreter) -> None:
    with running(interpreter, "census", "300") as target:
        assert ids(found(target.pid)) == sorted(target.ready["ids"])


def test_threads_of_a_subinterpreter(interpreter: Interpreter) -> None:
    with running(interpreter, "census", "2", "sub") as target:
        until(lambda: len({one["interpreter"] for one in found(target.pid)["threads"]}) == 2)
        seen = found(target.pid)
        assert set(ids(seen, main_only=True)) >= set(target.ready["ids"])
        inner = [one["tid"] for one in seen["threads"] if one["interpreter"] != 0]
        # Before 3.13, run_string() borrows the thread state that create() made, and with it the
        # identity of the thread that called create(); only from 3.11 on can that be told.
        expected = target.ready["sub"] if interpreter.minor >= (3, 11) else target.pid
        assert expected in inner


def test_threads_that_come_and_go(interpreter: Interpreter) -> None:
    with running(interpreter, "threadchurn") as target:
        for _ in range(20):
            listed = ids(found(target.pid))
            assert target.pid in listed
            assert len(listed) == len(set(listed))


def test_names_of_any_length(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    """As programs that make code may give it: nearly all of the stack has them."""
    script = (
        "import sys, time\n"
        "code = 'def f(n):\\n f(n - 1) if n else (print(1, flush=True), time.sleep(60))'\n"
        "exec(compile(code, 'f' * 100_000, 'exec'))\n"
        "names = {'co_name': 'x' * 100_000}\n"
        "if sys.version_info >= (3, 11): names['co_qualname'] = names['co_name']\n"
        "f.__code__ = f.__code__.replace(**names)\n"
        "f(10)\n"
    )
    command = interpreter.command("-c", script)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout
            assert target.stdout.readline() == "1\n"
            (thread,) = pystrobe.dump(target.pid)["threads"]
            names = [frame["function"] for frame in thread["frames"]]
            assert names == [*11 * ["x" * 65536 + "..."], "<module>"]
            assert {frame["file"] for frame in thread["frames"][:-1]} == {"f" * 65536 + "..."}
        finally:
            target.kill()


def test_a_child_after_fork_has_one_thread(interpreter: Interpreter) -> None:
    script = (
        "import os, sys, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "pid = os.fork()\n"
        "if pid: print(pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = interpreter.command("-W", "ignore", "-c", script)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        try:
            until(lambda: "error" not in probe(child))
            assert ids(found(child)) == [child]
        finally:
            os.kill(child, signal.SIGKILL)
            parent.kill()


def test_stopped_it_can_still_be_opened(interpreter: Interpreter) -> None:
    with running(interpreter, "census") as target:
        target.process.send_signal(signal.SIGSTOP)
        until(lambda: target.status("State").startswith("T"))
        assert ids(found(target.pid)) == sorted(target.ready["ids"])
        assert target.status("State").startswith("T")


def test_from_the_first_moment_on(interpreter: Interpreter) -> None:
    """Opened again and again while it starts: refused as not being Python yet, then found."""
    command = interpreter.command("-c", "import time; time.sleep(60)")
    with subprocess.Popen(command) as target:
        try:
            seen = probe(target.pid)
            deadline = time.monotonic() + 30
            while "error" in seen:
                assert seen["error"] in (3, 6), seen  # not Python, or executing something else
                assert time.monotonic() < deadline
                seen = probe(target.pid)
            assert ids(seen) == [target.pid]
        finally:
            target.kill()


def _copy_of(
    interpreter: Interpreter, directory: Path, stripped: bool
) -> tuple[Path, dict[str, str]]:
    """Executable and libpython, copied, the former renamed; and how to run them."""
    real = Path(interpreter.path).resolve()
    prefix = subprocess.run(
        [str(real), "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True
    ).stdout.strip()
    executable = directory / "myservice"
    shutil.copy(real, executable)
    environment = {**os.environ, "PYTHONHOME": prefix}
    libraries = list(Path(prefix, "lib").glob(f"libpython{interpreter.name}*.so.*"))
    for library in libraries:
        shutil.copy(library, directory)
        environment["LD_LIBRARY_PATH"] = str(directory)
    for file in (executable, *(directory / library.name for library in libraries)):
        if stripped:
            subprocess.run(["strip", "--strip-all", str(file)], check=True)
    return executable, environment


@pytest.mark.parametrize("deleted", [False, True], ids=["there", "deleted"])
def test_renamed_and_stripped(interpreter: Interpreter, tmp_path: Path, deleted: bool) -> None:
    if interpreter.root:
        pytest.skip("copied only where it needs no chroot")
    executable, environment = _copy_of(interpreter, tmp_path, stripped=True)
    command = [str(executable), "-S", "-c", "import time\nprint(flush=True)\ntime.sleep(60)"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as target:
        try:
            assert target.stdout
            target.stdout.readline()
            if deleted:
                for file in tmp_path.iterdir():
                    file.unlink()
            seen = found(target.pid)
            assert seen["executable"] == str(executable)
            assert seen["deleted"] == deleted
            assert ids(seen) == [target.pid]
        finally:
            target.kill()


@pytest.mark.each_layout
@pytest.mark.parametrize("stripped", [False, True], ids=["whole", "stripped"])
def test_replaced_by_another_version(
    pystrobe: Pystrobe, interpreter: Interpreter, tmp_path: Path, stripped: bool
) -> None:
    """After an upgrade the path leads to a file that is not the program's."""
    if interpreter.root:
        pytest.skip("copied only where it needs no chroot")
    other = next(
        one for one in all_interpreters() if not one.root and one.minor != interpreter.minor
    )
    copies = tmp_path / "copies"
    copies.mkdir()
    executable, environment = _copy_of(interpreter, copies, stripped)
    with subprocess.Popen(
        [str(executable), "-S", str(TARGETS / "deep.py"), "20"],
        env=environment,
        stdout=subprocess.PIPE,
    ) as target:
        try:
            assert target.stdout
            target.stdout.readline()
            for file in copies.iterdir():
                file.unlink()
                shutil.copy(Path(other.path).resolve(), file)
            seen = found(target.pid)
            assert (seen["deleted"], seen["version"]) == (True, interpreter.version)
            stacks = pystrobe.attach(target.pid, seconds=0.3).collapsed()
        finally:
            target.kill()
    assert stacks
    for stack in stacks:
        names = [frame.name for frame in stack.frames]
        assert names == ["<module>", "main", *21 * ["descend"], "spin"]


def test_in_a_virtual_environment(newest: Interpreter, tmp_path: Path) -> None:
    where = tmp_path / "venv"
    subprocess.run([newest.path, "-m", "venv", "--without-pip", str(where)], check=True)
    inside = Interpreter(newest.version, str(where / "bin" / "python"), None, False)
    with running(inside, "census") as target:
        assert ids(found(target.pid)) == sorted(target.ready["ids"])


@pytest.fixture(scope="module")
def root_with_python(newest: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Contained:
    """Where its path is, outside of the root is another version."""
    other = next(one for one in all_interpreters() if not one.root and one.minor != newest.minor)
    root = tmp_path_factory.mktemp("root")
    fill(root, newest, Path(other.path))
    return Contained(newest.version, other.path, str(root), newest.free_threaded)


@ROOT_ONLY
@pytest.mark.parametrize("own_mounts", [False, True], ids=["chroot", "mounts"])
def test_in_another_root(
    pystrobe: Pystrobe, newest: Interpreter, root_with_python: Contained, own_mounts: bool
) -> None:
    if own_mounts and subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        pytest.skip("no right to mounts of its own")
    inside = replace(root_with_python, own_mounts=own_mounts)
    with running(inside, "tower", environment=inside.environment()) as target:
        seen = found(target.pid)
        (thread,) = pystrobe.dump(target.pid)["threads"]
        recorded = pystrobe.attach(target.pid, seconds=0.5)
    assert seen["version"] == newest.version
    # Told as the kernel tells it: of our own mounts, from our root.
    assert seen["executable"] == ("" if own_mounts else inside.root or "") + inside.path
    names = [frame["function"] for frame in thread["frames"]]
    assert names[-2:] == ["main", "<module>"]
    verdict = oracle_of("tower", newest).judge(recorded.collapsed())
    assert verdict.total > 0
    assert not verdict.impossible, verdict.describe()


@ROOT_ONLY
def test_in_a_pid_namespace_of_its_own(interpreter: Interpreter) -> None:
    """A container's program counts its threads from 1; they are told as seen from outside."""
    if interpreter.root:
        pytest.skip("once is enough; unshare runs outside of the chroot")
    script = (
        "import os, threading, time\n"
        "for _ in range(3): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(60)\n"
    )
    command = ["unshare", "--pid", "--fork", "--kill-child", *interpreter.command("-c", script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as unshare:
        try:
            assert unshare.stdout
            assert int(unshare.stdout.readline()) == 1
            children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text()
            target = int(children.split()[0])
            tasks = sorted(int(one.name) for one in Path(f"/proc/{target}/task").iterdir())
            assert len(tasks) == 4
            assert ids(found(target)) == tasks
        finally:
            unshare.kill()


@ROOT_ONLY
@pytest.mark.alone
def test_the_second_process_of_a_container_is_none_of_the_kernel(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """Elsewhere that is kthreadd, and its children are threads of the kernel."""
    script = f"{newest.path} -c 'import time; time.sleep(60)' & sleep 0.5; {{}} dump $!; kill $!"
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    done = subprocess.run(
        [*command, script.format(pystrobe.executable)], capture_output=True, text=True, timeout=60
    )
    assert "pid 2," in done.stdout, done
    assert "<module>" in done.stdout


@ROOT_ONLY
def test_threads_that_come_and_go_in_a_pid_namespace(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    script = str(TARGETS / "threadchurn.py")
    command = ["unshare", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen(
        [*command, *newest.command(script)], stdout=subprocess.PIPE, text=True
    ) as unshare:
        try:
            assert unshare.stdout
            assert "ready" in unshare.stdout.readline()
            children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text()
            target = int(children.split()[0])
            recorded = pystrobe.attach(target, seconds=1.5)
        finally:
            unshare.kill()
    threads = recorded.json("--idle")["threads"]
    assert len(threads) > 2
    assert [one["tid"] for one in threads if one["name"] == "MainThread"] == [target]
    verdict = oracle_of("threadchurn", newest).judge(recorded.collapsed("--idle"))
    assert verdict.total > 0
    # As of every recording: a thread that is just set up or taken down may be told as a piece.
    assert verdict.impossible.total() == verdict.owned_up, verdict.describe()
    assert verdict.owned_up <= 2 + 0.001 * verdict.total, verdict.describe()


def test_without_rseq_there_is_no_offset(newest: Interpreter) -> None:
    with running(newest, "census") as target:
        with_rseq = found(target.pid)
    with running(
        newest, "census", environment={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    ) as target:
        without = found(target.pid)
    assert without["rseq_offset"] is None
    assert without["rseq_reason"]
    if with_rseq["rseq_offset"] is None:
        pytest.skip("this C library has no rseq at all")
