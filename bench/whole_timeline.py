# SPDX-License-Identifier: Apache-2.0
"""A timeline of very many calls, streamed to a file by `pystrobe trace` while the program runs:
whether all of them are there, and what that takes of time, memory and file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import paths  # isort: skip
import tools
from experiments import Plan, Row
from observe import PeakMemory
from pystrobe.bench._turns import Answer, ToolError, answer_of, program, spread

PROGRAM = paths.BENCH / "workloads" / "whole.py"
#: fib(20) so often: 65,673,000 calls.
UNITS = 3000
TIMEOUT_S = 600


def whole_timeline(plan: Plan) -> list[Row]:
    """On the interpreter that pystrobe is installed for."""
    units = UNITS // 100 if plan.quick else UNITS
    with program() as traced, TemporaryDirectory() as directory:
        script = str(shutil.copy(PROGRAM, traced.parent))
        file = Path(directory) / "whole.strobe"
        try:
            row = figures(*(turn(script, units, file) for _ in range(plan.rounds)))
        except (ToolError, subprocess.TimeoutExpired) as failure:
            row = {"failed": str(failure)}
        plan.say(f"  {row}")
        return [{"tool": "pystrobe", **row}]


def turn(script: str, units: int, file: Path) -> dict[str, Any]:
    """The program alone, traced, and the report of the recording."""
    words = [script, str(units)]
    alone = answer_of([sys.executable, *words], TIMEOUT_S)
    options = ("--timeline", "-o", str(file), "--force")
    traced = answer_of([tools.executable(), "trace", *options, *words], TIMEOUT_S)
    told = report(file)
    return {"alone": alone, "traced": traced, "bytes": file.stat().st_size, **told}


def report(file: Path) -> Answer:
    """How many calls of `fib` the file has, and what it takes to say so."""
    output = file.with_suffix(".json")
    command = [tools.executable(), "report", str(file), "-o", str(output), "--force"]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    peak = PeakMemory(process.pid)
    status = process.wait(TIMEOUT_S)
    seconds = time.perf_counter() - begin
    peak.end()
    if status != 0:
        raise ToolError(f"the report ended with {status}")
    functions = json.loads(output.read_text())["functions"]
    kept = sum(one["self"]["samples"] for one in functions if one["name"] == "fib")
    return {"kept": kept, "report_s": seconds, "report_kb": peak.kb}


def figures(*turns: dict[str, Any]) -> Row:
    made = turns[0]["traced"]["made"]
    return {
        "python": turns[0]["traced"]["release"],
        "calls": made,
        "kept_percent": min(100 * one["kept"] / made for one in turns),
        "slow": spread([one["traced"]["seconds"] / one["alone"]["seconds"] for one in turns]),
        "more_mb": max(one["traced"]["peak_kb"] - one["alone"]["peak_kb"] for one in turns) / 1024,
        "bytes_per_call": spread([one["bytes"] / made for one in turns]),
        "report_s": spread([one["report_s"] for one in turns]),
        "report_mb": max(one["report_kb"] for one in turns) / 1024,
    }
