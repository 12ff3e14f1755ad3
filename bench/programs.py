# SPDX-License-Identifier: Apache-2.0
"""Whole scripts under each profiler, those that work inside the program and those outside."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paths  # isort: skip
import tools
from experiments import Plan, Row
from pystrobe.bench._turns import spread

WORKLOADS = paths.BENCH / "workloads"
TIMEOUT_S = 120

Command = Callable[[Path, Path], list[str]]
"""Of a script and of a file, without suffix, for what is recorded."""


@dataclass(frozen=True)
class Profiler:
    name: str
    rate: float
    command: Command
    #: percent of native code, where the profiler tells it
    native: Callable[[Path], float | None] = lambda output: None


def own_python() -> str:
    """The one that has the package."""
    return sys.executable


def peer_python() -> str:
    return str(paths.PEERS / "bin" / "python")


def inside(rate: float, *options: str) -> Profiler:
    def command(script: Path, output: Path) -> list[str]:
        return [
            *(tools.executable(), "run", "--in-process", "--python", own_python(), "-q"),
            *("-r", f"{rate:g}", "-o", f"{output}.strobe", "--force", *options, str(script)),
        ]

    def native(output: Path) -> float | None:
        report = json.loads(tools.report(Path(f"{output}.strobe"), "json").read_text())
        split = report.get("cpu_split")
        return 100 * split["native_ns"] / sum(split.values()) if split else None

    return Profiler(" ".join(["pystrobe --in-process", *options]), rate, command, native)


def outside(rate: float) -> Profiler:
    def command(script: Path, output: Path) -> list[str]:
        return [
            *(tools.executable(), "run", "-q", "-r", f"{rate:g}", "-o", f"{output}.strobe"),
            *("--force", "--", own_python(), str(script)),
        ]

    return Profiler("pystrobe run", rate, command)


def pyspy(script: Path, output: Path) -> list[str]:
    return [
        *(str(paths.PEERS / "bin" / "py-spy"), "record", "-r", "1000", "-f", "raw"),
        *("-o", f"{output}.raw", "--", peer_python(), str(script)),
    ]


def austin(script: Path, output: Path) -> list[str]:
    program = tools.austin_program()
    return [*program, "-i", "1ms", "-o", f"{output}.mojo", peer_python(), str(script)]


def pyinstrument(script: Path, output: Path) -> list[str]:
    options = ["-m", "pyinstrument", "-i", "0.001", "-r", "json", "-o", f"{output}.json"]
    return [peer_python(), *options, str(script)]


def scalene(script: Path, output: Path) -> list[str]:
    options = ["-m", "scalene", "run", "--cpu-only", "-o", f"{output}.json"]
    return [peer_python(), *options, str(script)]


def native_by_scalene(output: Path) -> float | None:
    report = json.loads(Path(f"{output}.json").read_text())
    lines = [line for file in report["files"].values() for line in file["lines"]]
    parts = {
        part: sum(line[f"n_{part}"] for line in lines)
        for part in ("cpu_percent_python", "cpu_percent_c", "sys_percent")
    }
    return float(100 * parts["cpu_percent_c"] / (sum(parts.values()) or 1))


def alone(script: Path, output: Path) -> list[str]:
    del output
    return [own_python(), str(script)]


PROFILERS = [
    Profiler("none", 0, alone),  # what chance alone makes of the figures
    inside(100),
    inside(1000),
    inside(1000, "--native"),
    inside(1000, "--mode", "wall"),
    outside(1000),
    Profiler("py-spy", 1000, pyspy),
    Profiler("Austin", 1000, austin),
    Profiler("pyinstrument", 1000, pyinstrument),
    Profiler("Scalene", 100, scalene, native_by_scalene),  # its own rate
]


def figures(command: list[str]) -> dict[str, float]:
    """What the script says of itself."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**tools.own_environment(), "PYTHONPATH": str(WORKLOADS)},
    )
    for line in reversed(done.stderr.splitlines()):
        if line.startswith('{"wall"'):
            return dict(json.loads(line))
    raise RuntimeError(f"{command[:4]} ended with {done.returncode}: {done.stderr[-500:]}")


def scripts(plan: Plan) -> list[Row]:
    """Each script alone and under each profiler in turn, over and over; the ratio of neighbours."""
    workloads, rounds_each = (("fib",), 1) if plan.quick else (("fib", "mixed"), plan.rounds)
    rows = []
    for workload in workloads:
        script = WORKLOADS / f"{workload}.py"
        seen: dict[Profiler, list[dict[str, Any]]] = {profiler: [] for profiler in PROFILERS}
        for _ in range(rounds_each):
            for profiler in PROFILERS:
                seen[profiler].append(one_script(profiler, script))
        for profiler, rounds in seen.items():
            rows.append(summary(profiler, workload, rounds))
            plan.say(f"  {rows[-1]}")
    return rows


def one_script(profiler: Profiler, script: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "recording"
        alone = figures([own_python(), str(script)])
        try:
            under = figures(profiler.command(script, output))
            native = profiler.native(output)
        except (RuntimeError, OSError, KeyError, ValueError, subprocess.SubprocessError) as failure:
            return {"failed": str(failure)}
    return {
        "slow": under["wall"] / alone["wall"],
        "slow_cpu": under["cpu"] / alone["cpu"],
        "native_percent": native,
    }


def summary(profiler: Profiler, workload: str, rounds: list[dict[str, Any]]) -> Row:
    row: Row = {"tool": profiler.name, "workload": workload, "asked": profiler.rate}
    good = [one for one in rounds if "failed" not in one]
    if not good:
        return row | {"failed": rounds[0]["failed"]}
    for key in ("slow", "slow_cpu", "native_percent"):
        values = [one[key] for one in good if one[key] is not None]
        if values:
            row[key] = spread(values)
    return row | {"rounds": len(good)}
