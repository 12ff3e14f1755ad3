# SPDX-License-Identifier: Apache-2.0
"""CPU time by what used it, Python, C functions or the kernel: against what is known of it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from find import Interpreter
from native_stacks import splits
from own_sampling import library, outside_its_root, sampling_itself
from pystrobe_command import Pystrobe


@pytest.mark.chance
@pytest.mark.oldest_and_newest
def test_cpu_time_is_split_by_what_used_it(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    interpreter = outside_its_root(interpreter)
    with sampling_itself(pystrobe, interpreter, "split") as own:
        report = own.record(seconds=3, rate=1000, native=True).json()
        truth = own.target.stop()["used"]
    total = report["cpu_split"]
    # What has no frames is no part of it: of libraries' threads, say, or before the first look.
    unseen = report["unseen"]["cpu_ns"]
    assert sum(total.values()) <= report["total"]["cpu_ns"] - unseen
    found = splits(report)
    assert found["python"]["native"] < 2
    assert found["python"]["python"] > 95
    assert found["native"]["native"] > 90
    assert found["calls"]["kernel"] > 85
    for name, (user, system) in truth.items():
        expected = 100 * system / (user + system)
        assert found[name]["kernel"] == pytest.approx(expected, abs=12), name


@dataclass(frozen=True)
class Unprivileged(Interpreter):
    """It may not sample the kernel."""

    recordings: Path = Path()

    def command(self, *arguments: str) -> list[str]:
        drop = ["setpriv", "--bounding-set", "-sys_admin,-perfmon", "env"]
        own = [f"LD_PRELOAD={library()}", f"PYSTROBE_OWN_RECORDING={self.recordings}"]
        return [*drop, *own, *super().command(*arguments)]

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": ""}


@pytest.mark.chance
def test_time_in_the_kernel_is_where_it_was_spent_though_no_event_tells(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    if Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip() < "2":
        pytest.skip("everybody may sample the kernel")
    if os.geteuid() != 0:
        pytest.skip("only root can drop capabilities from the bounding set")
    interpreter = Unprivileged(**vars(newest), recordings=pystrobe.directory)
    with sampling_itself(pystrobe, interpreter, "split") as own:
        report = own.record(seconds=4, rate=1000, native=True).json()
    assert report["quality"]["cpu_source"] in ("perf task clock (user mode)", "CPU timer")
    found = splits(report)
    assert found["calls"]["kernel"] > 80
    assert found["faults"]["kernel"] > 80 or report["quality"]["cpu_source"] == "CPU timer"
    assert found["python"]["kernel"] < 10
    # All have the same share.
    for function in report["functions"]:
        if function["name"] in ("python", "native", "calls", "faults"):
            share = 100 * function["total"]["cpu_ns"] / report["total"]["cpu_ns"]
            assert share == pytest.approx(25, abs=4), function["name"]


def test_lines_add_up_to_their_function(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with sampling_itself(pystrobe, newest, "split") as own:
        report = own.record(seconds=1, rate=1000, native=True).json()
    functions = [function for function in report["functions"] if "lines" in function]
    assert functions
    for function in functions:
        for part in ("python_ns", "native_ns", "kernel_ns"):
            lines = [line[part] for line in function["lines"]]
            assert sum(lines) == function["cpu_split"][part]
    for part in ("python_ns", "native_ns", "kernel_ns"):
        shown = sum(function["cpu_split"][part] for function in functions)
        assert shown <= report["cpu_split"][part]


def test_without_c_functions_there_is_no_split(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with sampling_itself(pystrobe, newest, "split") as own:
        recorded = own.record(seconds=0.5, rate=1000)
    report = recorded.json()
    assert report["metadata"]["native"] is False
    assert "cpu_split" not in report
    assert not any("cpu_split" in function for function in report["functions"])
    table = subprocess.run(
        [pystrobe.executable, "report", recorded.path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "What used the CPU" not in table


def test_from_python(pystrobe: Pystrobe, newest: Interpreter) -> None:
    package = pytest.importorskip("pystrobe", reason="the package is not installed: make build")
    with sampling_itself(pystrobe, newest, "split") as own:
        recorded = own.record(seconds=1, rate=1000, native=True)
    told = recorded.json()
    report = package.read(recorded.path)
    assert report.metadata.native
    assert report.cpu_split == package.CpuSplit(**told["cpu_split"])
    native = next(function for function in report.functions if function.name == "native")
    assert sum(line.native_ns for line in native.lines.values()) > 0
    assert all(line.total_ns > 0 for line in native.lines.values())
    crc32 = next(function for function in report.functions if "crc32" in function.name)
    assert crc32.native
    assert not crc32.lines
