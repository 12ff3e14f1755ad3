# SPDX-License-Identifier: Apache-2.0
"""Want of memory: one error, a failure's exit status, and nothing lost that was recorded."""

from __future__ import annotations

import re
import resource
import subprocess
import time
from pathlib import Path

import pytest
from find import Interpreter
from pystrobe_command import Pystrobe
from running import running

NO_LOADER = 127  # so little that not even the dynamic linker does its work

# Functions without end, each with a name of its own, which the sampler has to remember.
GROWING = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
number = 0
while time.monotonic() < end:
    number += 1
    names = {}
    exec(f"def function_{number}():\\n    for _ in range(3000): pass\\n", names)
    names[f"function_{number}"]()
sys.exit(3)
"""


def let_it_grow_no_more(pid: int) -> None:
    size = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (size, most))


def saved_recording(err: str) -> Path:
    match = re.search(r"gave up; what was recorded is in (\S+\.strobe)", err)
    assert match, err
    return Path(match[1])


def test_a_report_ends_with_one_error(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    path = tmp_path / "a.strobe"
    page = tmp_path / "a.html"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.5", "-q", "-o", str(path))
    endings = set()
    # With less than the executable itself takes, the kernel ends it before anybody can say so.
    kilobytes = pystrobe.executable.stat().st_size // 1000 + 500
    while 0 not in endings:
        kilobytes += 100
        command = f"ulimit -v {kilobytes}; exec {pystrobe.executable} report {path} -o {page}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30)
        endings.add(done.returncode)
        if done.returncode == 1:
            first, cure = done.stderr.splitlines()
            assert first == f"pystrobe: out of memory: its limit is {kilobytes} kB (ulimit -v)"
            assert "ulimit -v unlimited" in cure
            assert not page.exists()
    assert endings - {NO_LOADER} == {0, 1}


@pytest.mark.parametrize("streamed", [True, False])
def test_attach_saves_the_recording(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, streamed: bool
) -> None:
    output = tmp_path / ("a.strobe" if streamed else "a.html")
    program = [*newest.command(), "-c", GROWING, "30"]
    with subprocess.Popen(program) as target:
        time.sleep(0.5)
        sampler = pystrobe.start("attach", str(target.pid), "-r", "10000", "-o", str(output))
        time.sleep(1.5)
        let_it_grow_no_more(sampler.pid)
        out, err = sampler.communicate(timeout=30)
        assert target.poll() is None
        target.kill()
    assert sampler.returncode == 1, err
    assert (out, err.count("out of memory")) == ("", 1)
    saved = saved_recording(err)
    try:
        assert (saved == output) == streamed
        assert output.exists() == streamed
        assert "function_" in pystrobe.succeed("report", str(saved)).out
    finally:
        saved.unlink()


@pytest.mark.parametrize("pause", ["auto", "ptrace"])
def test_run_ends_with_its_program(pystrobe: Pystrobe, newest: Interpreter, pause: str) -> None:
    begun = time.monotonic()
    program = ("--", *newest.command(), "-c", GROWING, "2")
    sampler = pystrobe.start("run", "-r", "10000", "--pause", pause, *program)
    time.sleep(1)
    let_it_grow_no_more(sampler.pid)
    _, err = sampler.communicate(timeout=30)
    assert sampler.returncode == 3, err
    assert time.monotonic() - begun > 2
    assert err.count("out of memory") == 1
    saved_recording(err).unlink()
