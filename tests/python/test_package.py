# SPDX-License-Identifier: Apache-2.0
"""The Python package: what is installed, how fast it is there, and the core as an API."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from find import Interpreter
from running import running

pytestmark = pytest.mark.beside_others

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")

REPOSITORY = Path(__file__).resolve().parents[2]


def python(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, **options
    )  # type: ignore[call-overload]


def test_importing_loads_neither_the_core_nor_much_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import pystrobe; print(*set(sys.modules) - before)"
    )
    assert python("-I", "-c", code).stdout.split() == ["pystrobe"]


def test_every_public_name_is_there_and_listed() -> None:
    for name in pystrobe.__all__:
        assert getattr(pystrobe, name) is not None
    assert set(pystrobe.__all__) <= set(dir(pystrobe))
    with pytest.raises(AttributeError, match="no_such_thing"):
        pystrobe.no_such_thing  # noqa: B018


def test_the_version_is_the_one_the_build_declares() -> None:
    declared = (REPOSITORY / "CMakeLists.txt").read_text().split("VERSION ")[2].split()[0]
    assert pystrobe.__version__ == declared
    answer = subprocess.run([pystrobe.executable(), "--version"], capture_output=True, text=True)
    assert declared in answer.stdout


def test_the_module_runs_the_executable() -> None:
    direct = subprocess.run([pystrobe.executable(), "--help"], capture_output=True, text=True)
    by_module = python("-m", "pystrobe", "--help")
    assert direct.returncode == by_module.returncode == 0
    assert direct.stdout == by_module.stdout != ""
    assert python("-m", "pystrobe", "--no-such-option").returncode not in (0, 1)


@pytest.mark.parametrize("use", ["pystrobe.Tracer()", "pystrobe.region", "import pystrobe.gpu"])
def test_a_subinterpreter_is_refused(use: str) -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("the interpreter does it")
    program = f"""
import pystrobe, _xxsubinterpreters as interpreters
pystrobe.Tracer
try:
    interpreters.run_string(interpreters.create(), "import pystrobe; {use}")
except interpreters.RunFailedError as error:
    print(error)
"""
    assert "does not support loading in subinterpreters" in python("-c", program).stdout


def test_the_executable_is_found_beside_a_package_in_a_directory_of_its_own(tmp_path: Path) -> None:
    # As `pip install --target` leaves them.
    shutil.copytree(Path(pystrobe.__file__).parent, tmp_path / "pystrobe")
    executable = tmp_path / "bin" / "pystrobe"
    executable.parent.mkdir()
    shutil.copy(pystrobe.executable(), executable)
    found = subprocess.run(
        [sys.executable, "-c", "import pystrobe; print(pystrobe.executable())"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == str(executable)


def test_the_executable_needs_nothing_but_glibc() -> None:
    listing = subprocess.run(
        ["readelf", "--dynamic", pystrobe.executable()], capture_output=True, text=True, check=True
    ).stdout
    needed = {line.split("[")[1].rstrip("]") for line in listing.splitlines() if "(NEEDED)" in line}
    glibc = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
    assert {name for name in needed if not name.startswith("ld-linux")} <= glibc


def test_the_executable_needs_no_younger_glibc_than_debian_12_has() -> None:
    listing = subprocess.run(
        ["readelf", "--version-info", pystrobe.executable()],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    versions = {
        tuple(map(int, number.split("."))) for number in re.findall(r"GLIBC_([\d.]+)", listing)
    }
    # Built elsewhere, it needs what is there.
    here = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[-1].split(".")))
    assert (2, 2, 5) <= max(versions) <= max((2, 36), here)


def test_in_an_empty_root_the_executable_works_alone(newest: Interpreter, tmp_path: Path) -> None:
    enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
    if subprocess.run([*enter, "/", "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to change the root")
    with running(newest, "tower") as target:
        attach = ["attach", str(target.pid), "-d", "0.3", "-q", "-o", str(tmp_path / "a.strobe")]
        subprocess.run([pystrobe.executable(), *attach], check=True)
    shutil.copy(pystrobe.executable(), tmp_path / "pystrobe")
    libraries = subprocess.run(
        ["ldd", pystrobe.executable()], capture_output=True, text=True, check=True
    ).stdout
    for path in re.findall(r"/\S+", libraries):
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path[1:])

    def alone(*arguments: str) -> str:
        command = [*enter, str(tmp_path), "/pystrobe", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    assert "attach PID" in alone("--help")
    assert "node_0" in alone("report", "/a.strobe")
    assert "node_0" in alone("report", "/a.strobe", "-f", "collapsed", "-o", "-")


def test_dump_shows_a_running_program(newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        dump = pystrobe.dump(target.pid)
    assert dump.pid == target.pid
    assert dump.command[-1].endswith("/tower.py")
    main = dump.threads[0]
    assert main.tid == target.pid
    assert main.complete
    assert main.frames[-1].function == "<module>"
    assert main.frames[-1].file.endswith("tower.py")
    assert all(frame.locals == () for thread in dump.threads for frame in thread.frames)


def test_dump_reads_locals_when_asked(newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        dump = pystrobe.dump(target.pid, locals=True)
    assert any(frame.locals for thread in dump.threads for frame in thread.frames)


def test_dump_lets_other_threads_run(newest: Interpreter) -> None:
    """The GIL is released while the core works: a thread counts on meanwhile."""
    with running(newest, "tower") as target:
        stop = threading.Event()
        turns = 0

        def count() -> None:
            nonlocal turns
            while not stop.is_set():
                turns += 1

        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(20):
            pystrobe.dump(target.pid)
        stop.set()
        thread.join()
    assert turns > 0


@pytest.mark.parametrize(
    ("call", "kind", "builtin"),
    [
        (lambda: pystrobe.dump(2**22 + 12345), pystrobe.NotFoundError, LookupError),
        (
            lambda: pystrobe.dump(os.getpid(), pause="gently"),
            pystrobe.InvalidArgumentError,
            ValueError,
        ),
        (lambda: pystrobe.read("no/such/file.strobe"), pystrobe.NotFoundError, LookupError),
        (lambda: pystrobe.read(__file__), pystrobe.CorruptFileError, ValueError),
        (
            lambda: pystrobe.read("x.strobe", mode="moon"),  # type: ignore[arg-type]
            pystrobe.InvalidArgumentError,
            ValueError,
        ),
        (
            lambda: pystrobe.read("x.strobe", since=-1),
            pystrobe.InvalidArgumentError,
            ValueError,
        ),
    ],
)
def test_errors_are_exceptions_of_the_right_kind(call, kind, builtin) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, pystrobe.Error)
    assert isinstance(error, builtin)
    assert error.message
    assert str(error).startswith(error.message)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.message, again.hint) == (type(error), error.message, error.hint)


def test_a_process_that_is_not_python_is_refused() -> None:
    sleep = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(pystrobe.NotPythonError, match="sleep"):
            pystrobe.dump(sleep.pid)
    finally:
        sleep.kill()
        sleep.wait()


@pytest.mark.alone
def test_read_agrees_with_the_recording(newest: Interpreter, tmp_path: Path) -> None:
    path = tmp_path / "out.strobe"
    with running(newest, "tower") as target:
        subprocess.run(
            [pystrobe.executable(), "attach", str(target.pid), "-d", "1", "-r", "200", "-o", path],
            check=True,
            capture_output=True,
        )
    report = pystrobe.read(path)
    assert report.metadata.pid == target.pid
    assert report.metadata.wanted_rate_hz == 200
    assert report.metadata.pystrobe_version == pystrobe.__version__
    assert report.quality.complete
    assert report.cut_off == ""
    assert report.total.samples > 0
    # Own times add up to the whole, and no function has more in all than there is.
    assert sum(row.self.wall_ns for row in report.functions) == report.total.wall_ns
    assert sum(row.self.cpu_ns for row in report.functions) == report.total.cpu_ns
    assert all(
        row.self.wall_ns <= row.total.wall_ns <= report.total.wall_ns for row in report.functions
    )
    ordered = [row.self.nanoseconds("cpu") for row in pystrobe.read(path, mode="cpu").functions]
    assert ordered == sorted(ordered, reverse=True)
    first = pystrobe.read(path, until=0.5).total.samples
    rest = pystrobe.read(path, since=0.5).total.samples
    assert 0 < first < report.total.samples
    assert first + rest == pytest.approx(report.total.samples, abs=1)
    assert pystrobe.read(path, thread=str(target.pid)).total == report.total
    with pytest.raises(pystrobe.Error, match="no-such-thread"):
        pystrobe.read(path, thread="no-such-thread")


def test_a_cut_off_recording_is_read_and_said_to_be(newest: Interpreter, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.strobe", tmp_path / "cut.strobe"
    with running(newest, "tower") as target:
        subprocess.run(
            [pystrobe.executable(), "attach", str(target.pid), "-d", "2", "-o", whole],
            check=True,
            capture_output=True,
        )
    cut.write_bytes(whole.read_bytes()[:-40])
    report = pystrobe.read(cut)
    assert report.cut_off
    assert not report.quality.complete
    assert 0 < report.total.samples <= pystrobe.read(whole).total.samples


CUT_NAME = """
import ctypes, sys, _thread, time
def work():
    # PR_SET_NAME keeps 15 bytes of 16.
    ctypes.CDLL(None).prctl(15, ("\\u00e9" * 8).encode(), 0, 0, 0)
    print("ready", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end: pass
_thread.start_new_thread(work, ())
time.sleep(60)
"""


def test_what_is_not_utf8_is_read_all_the_same(newest: Interpreter, tmp_path: Path) -> None:
    """A thread's name that the kernel cut inside a character; arguments and paths of any bytes."""
    path = tmp_path / os.fsdecode(b"out-\xff.strobe")
    command = [*newest.command(), "-c", CUT_NAME, b"\xff\xe9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout
            assert target.stdout.readline() == "ready\n"
            dump = pystrobe.dump(target.pid)
            subprocess.run(
                [pystrobe.executable(), "attach", str(target.pid), "-d", "0.5", "-o", path],
                check=True,
                capture_output=True,
            )
        finally:
            target.kill()
    report = pystrobe.read(path)
    name = "\u00e9" * 7 + "\ufffd"
    assert name in {thread.name for thread in dump.threads}
    assert name in {thread.name for thread in report.threads}
    assert os.fsencode(dump.command[-1]) == b"\xff\xe9"
    assert os.fsencode(report.metadata.command[-1]) == b"\xff\xe9"
    with pytest.raises(pystrobe.NotFoundError, match="no-such-\ufffd"):
        pystrobe.read(os.fsdecode(b"no-such-\xff"))
