# SPDX-License-Identifier: Apache-2.0
"""C functions between Python's, sampled from outside: every target on every interpreter."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pybind11
import pytest
from browser import Browser
from cases import Case
from conftest import oracle_of
from find import Interpreter
from html_page import rows, set_query
from native_stacks import (
    FIRST_UNFIT,
    MOST_UNFIT,
    TOO_DEEP,
    cases_but_often,
    count_calls,
    count_inside,
    library_of_two_units,
    native_stacks,
    splits,
    two_libraries,
)
from pystrobe_command import Finished, Pystrobe, Recorded, with_few_descriptors
from running import TARGETS, Running, running

ENOUGH = 50
MOST_RUNS = 8


def attach_native(
    pystrobe: Pystrobe, target: Running, seconds: float = 1, rate: float = 1000
) -> dict[str, Any]:
    recorded = pystrobe.attach(target.pid, "--native", seconds=seconds, rate=rate)
    return recorded.json("--idle")


@pytest.mark.each_layout
@pytest.mark.parametrize("case", cases_but_often("awaits", "callbacks", "generators", "native"))
def test_c_functions_fit_between_those_of_python(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case
) -> None:
    """And what they stand between is a stack that the program can have."""
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    oracle = oracle_of(case.target, interpreter)
    judged = 0
    with running(interpreter, case.target, *case.arguments) as target:
        for _ in range(MOST_RUNS):
            report = attach_native(pystrobe, target)
            quality = report["quality"]
            stacks = list(native_stacks(report))
            verdict = oracle.judge([stack.python for stack in stacks])
            told = f"{verdict.describe()}\n{quality['line']}"
            assert verdict.impossible.total() == verdict.owned_up, told
            assert verdict.owned_up <= 2 + 0.001 * verdict.total, told
            most_unfit = FIRST_UNFIT + MOST_UNFIT.get(case.target, 0) * verdict.total
            assert quality["native_unfit"] <= most_unfit, told
            # Where the C library makes a thread it tells nothing of its caller; of one that sleeps
            # some registers are not known.
            is_too_deep = case == TOO_DEEP and interpreter.minor < (3, 11)
            assert is_too_deep or quality["native_cut"] <= 5 + 0.02 * verdict.total, told
            judged += verdict.total
            if judged >= ENOUGH:
                break
        assert target.status("TracerPid") == "0"
    assert judged >= ENOUGH


@pytest.mark.chance
def test_c_functions_stand_below_who_called_them(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    samples: Counter[str] = Counter()
    with running(interpreter, "native") as target:
        for _ in range(MOST_RUNS):
            report = attach_native(pystrobe, target)
            samples += count_inside(list(native_stacks(report, "cpu_samples")))
            if min(samples["shrink"], samples["python"]) > 200 and samples["digest"] > 20:
                break
    # Where zlib is a part of the interpreter none of its own functions are shown.
    assert samples["shrink in C"] > 0.8 * samples["shrink"]
    assert samples["shrink by name"] > 0.8 * samples["shrink"]
    assert samples["digest in C"] > 0.8 * samples["digest"] > 9
    assert samples["python"] > 200
    assert samples["python in C"] <= 0.03 * samples["python"]


def test_names_follow_libraries_that_come_and_go(pystrobe: Pystrobe, newest: Interpreter) -> None:
    libraries = two_libraries(pystrobe.directory)
    with running(newest, "c_libraries", *libraries) as target:
        report = attach_native(pystrobe, target, seconds=2.5)
    called = count_calls(list(native_stacks(report)))
    right = called["first", "burn_first"] + called["second", "burn_second"]
    least = min(called["first", "burn_first"], called["second", "burn_second"])
    told = f"{called}; {report['quality']['line']}"
    assert least > 200, told
    # Within some 10 of the 250 ms that each is there the name may be that of what was there.
    assert called.total() - right <= 0.1 * called.total(), told


def test_a_library_that_is_stripped_meanwhile_is_named_no_more(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """In place, with what the program itself has mapped left as it is."""
    library = library_of_two_units(pystrobe.directory)
    stripped = pystrobe.directory / "stripped.so"
    subprocess.run(["strip", "-o", str(stripped), library], check=True)
    now_the_second = pystrobe.directory / "second"
    out = pystrobe.directory / "stripped.strobe"
    options = ["--native", "-r", "1000", "-d", "2.4", "-o", str(out)]
    with running(newest, "c_units", library, str(now_the_second)) as target:
        sampler = pystrobe.start("attach", str(target.pid), *options)
        time.sleep(1.2)
        os.truncate(library, stripped.stat().st_size)
        now_the_second.touch()
        _, told = sampler.communicate(timeout=60)
        assert target.alive()
    assert sampler.returncode == 0, (sampler.returncode, told)
    report = Recorded(pystrobe, out, Finished(0, "", told)).json()
    leaves: Counter[str] = Counter()
    for stack in native_stacks(report):
        leaves[stack.frames[-1].name] += stack.samples
    assert leaves["burn_first"] >= ENOUGH, "it had been asked for before"
    assert sum(leaves[name] for name in leaves if name.startswith("units.so+")) >= ENOUGH, leaves


@pytest.mark.oldest_and_newest
def test_who_waits_in_the_kernel_is_not_disturbed(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """And the C functions in which it waits are known all the same."""
    with running(interpreter, "waits_in_c") as target:
        report = attach_native(pystrobe, target, seconds=2)
        truth = target.stop()
    waits = [stack for stack in native_stacks(report) if stack.thread == "waits"]
    assert truth["interrupted"] == 0
    waiting = [
        stack for stack in waits if "epoll_wait" in [frame.name for frame in stack.below("wait")]
    ]
    assert sum(s.samples for s in waiting) > 0.9 * sum(s.samples for s in waits)


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_cpu_time_is_split_by_what_used_it(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    with running(interpreter, "split") as target:
        report = attach_native(pystrobe, target, seconds=2.5)
        truth = target.stop()["used"]
    assert report["metadata"]["native"]
    total = report["cpu_split"]
    assert sum(total.values()) <= report["total"]["cpu_ns"] - report["unseen"]["cpu_ns"]
    found = splits(report)
    assert found["python"]["native"] < 3
    assert found["native"]["native"] > 85
    # A thread that is asked to stop between two calls may have begun the next one by then; and to
    # make a page is told only to who samples from inside.
    for name in ("calls", "python", "native"):
        user, system = truth[name]
        expected = 100 * system / (user + system)
        assert found[name]["kernel"] == pytest.approx(expected, abs=15), name


def test_c_functions_stand_where_they_are_in_a_greenlet(pystrobe: Pystrobe) -> None:
    """Beyond what began it the C stack is not its own, and is not shown."""
    own = Interpreter(platform.python_version(), sys.executable, None, False)
    with running(own, "switching") as target:
        report = attach_native(pystrobe, target)
    inside = [s for s in native_stacks(report, "cpu_samples") if s.python.frames[-1:]]
    inside = [s for s in inside if s.python.frames[-1].name == "leaf"]
    total = sum(stack.samples for stack in inside)
    assert total > 200
    assert sum(s.samples for s in inside if s.frames[-1].native) < 0.02 * total
    placed = 0
    for stack in inside:
        names = [frame.name for frame in stack.frames]
        between = stack.frames[1 : names.index("leaf")]
        # ctypes calls through libffi.
        if names[0] == "loop" and any("libffi" in frame.file for frame in between):
            placed += stack.samples
    assert placed > 0.98 * total, inside[:5]
    assert report["quality"]["native_unfit"] < 0.02 * total, report["quality"]["line"]


@pytest.mark.oldest_and_newest
def test_the_lock_is_somebodys_all_the_time(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    """Though it may go from one thread to the next while these are looked at by turns."""
    if interpreter.free_threaded:
        pytest.skip("there is no lock")
    with running(interpreter, "threads") as target:
        report = attach_native(pystrobe, target, seconds=2)
    seconds = report["quality"]["duration_ns"]
    assert 0.85 * seconds < report["total"]["gil_ns"] < 1.02 * seconds


def test_a_program_is_started_with_it(pystrobe: Pystrobe, newest: Interpreter) -> None:
    path = pystrobe.directory / "run.strobe"
    script = "import zlib\nfor _ in range(60):\n    zlib.compress(bytes(range(256)) * 4000, 6)\n"
    program = pystrobe.directory / "compresses.py"
    program.write_text(script)
    interpreter = newest.command()
    if len(interpreter) > 1:
        pytest.skip("it is in another root")
    options = ["--native", "-r", "1000", "--python", interpreter[0], "-o", str(path)]
    pystrobe.succeed("run", *options, str(program))
    text = pystrobe.succeed("report", str(path), "-f", "collapsed", "--unit", "us").out
    inside = sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if "deflate" in line)
    assert inside > 0.5 * sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


@pytest.mark.parametrize("limit", [8, 24, 64])
def test_with_few_descriptors_it_is_refused_or_works(
    pystrobe: Pystrobe, newest: Interpreter, limit: int
) -> None:
    """The files with C functions stay open, and leave little to what samples are made of."""
    path = pystrobe.directory / "few.strobe"
    with running(newest, "fib") as target:
        options = ("--native", "-d", "1", "-r", "200", "-o", str(path))
        finished = with_few_descriptors(pystrobe, limit, "attach", str(target.pid), *options)
    if limit < 40:
        assert finished.code != 0
        assert "Too many open files" in finished.err
        assert "ulimit -n" in finished.err
        return
    assert finished.code == 0, finished
    report = Recorded(pystrobe, path, finished).json()
    assert report["unseen"]["cpu_ns"] < 0.1 * report["total"]["cpu_ns"]


@pytest.mark.parametrize("pause", ["preempt", "none"])
def test_it_is_refused_without_stopping_threads(pystrobe: Pystrobe, pause: str) -> None:
    for verb in (("attach", "1"), ("run",)):
        words = ("true",) if verb == ("run",) else ()
        done = pystrobe.run(*verb, "--native", "--pause", pause, *words)
        assert done.code == 2, done
        assert f"--native stops threads by ptrace, not by --pause {pause}" in done.err


@pytest.fixture(scope="module")
def particles(newest: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C++ module with debug information; the folder that it is in."""
    script = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.check_output(newest.command("-c", script), text=True).strip()
    if not Path(include, "Python.h").exists():
        pytest.skip("no Python.h")
    directory = tmp_path_factory.mktemp("particles")
    # pybind11 takes long to compile; where variables are is of no interest.
    debuggable = ["-O2", "-g", "-fno-var-tracking"]
    compiler = ["g++", "-std=c++17", *debuggable, "-shared", "-fPIC", f"-I{include}"]
    module = str(directory / "particles_module.so")
    source = str(TARGETS / "particles.cpp")
    headers = pybind11.get_include()
    subprocess.run([*compiler, f"-I{headers}", "-o", module, source], check=True)
    return directory


def test_a_cpp_program_in_a_page(
    pystrobe: Pystrobe, newest: Interpreter, particles: Path, page: Browser
) -> None:
    """What is inlined too, by its source, and Python below C++ below Python."""
    html = pystrobe.directory / "particles.html"
    with running(newest, "particles", str(particles)) as target:
        recorded = pystrobe.attach(target.pid, "--native", "-o", str(html), seconds=2)
    stacks = list(native_stacks(recorded.json(), "cpu_samples"))
    energy = [s for s in stacks if any("Energy" in f.name for f in s.below("simulate"))]
    assert sum(s.samples for s in energy) > 0.5 * sum(s.samples for s in stacks)
    below = {frame for stack in energy for frame in stack.below("simulate")}
    assert {f.name for f in below} >= {
        "particles::System<double>::Energy",
        "particles::System<double>::Observe",
        "particles::Square<double>",
    }
    files = {f.file for f in below if f.name.startswith("particles::")}
    assert files == {str(TARGETS / "particles.cpp")}
    called_back = [s for s in stacks if s.frames and s.frames[-1].name == "remember"]
    through = [s for s in called_back if any("Observe" in frame.name for frame in s.frames)]
    assert through
    for stack in through:
        names = [frame.name for frame in stack.frames]
        observe = names.index("particles::System<double>::Observe")
        assert names.index("simulate") < observe < names.index("remember")
    quality = recorded.json()["quality"]
    told = quality["native_cut"] + quality["native_unfit"]
    assert sum(s.samples for s in called_back) - sum(s.samples for s in through) <= told

    page.open(html)
    set_query(page, "System<double>::Energy")
    found = page.text("#found")
    assert float(re.search(r"([\d.]+) %", found)[1]) > 50, found
    assert "particles::System<double>::Energy" in rows(page)
