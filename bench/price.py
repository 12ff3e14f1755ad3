# SPDX-License-Identifier: Apache-2.0
"""Experiments on what a tool costs: slow-down, highest rate, latency, files, memory."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from statistics import mean, median

import paths  # noqa: F401  # isort: skip
import tools
from experiments import Plan, Row, attempt, base_row, cost, request, sample, target
from find import Interpreter
from observe import observe, timed
from on_and_off import turns
from pystrobe.bench._turns import ToolError, spread
from running import Running, apart


def slowdown(plan: Plan) -> list[Row]:
    """fib, by turns alone and sampled, by each tool in turn, in the same process, over and over."""
    rows = []
    for interpreter in plan.interpreters:
        usable = [tool for tool in (tools.NOTHING, *plan.chosen) if tool.supports(interpreter)]
        for rate in (100.0, 1000.0, 10000.0):
            seen: dict[str, list[Row]] = {tool.name: [] for tool in usable}
            with target(interpreter, "fib") as started:
                for _ in range(plan.rounds):
                    for tool in usable:
                        row = attempt(
                            plan, base_row(interpreter, tool) | {"asked": rate},
                            one_slowdown, plan, interpreter, tool, started, rate,
                        )  # fmt: skip
                        seen[tool.name].append(row)
            rows += [summary(rounds) for rounds in seen.values()]
    return rows


def one_slowdown(
    plan: Plan, interpreter: Interpreter, tool: tools.Tool, started: Running, rate: float
) -> Row:
    cpu = apart()[1]
    if cpu is None:
        raise ToolError("needs a second CPU")
    with request(interpreter, started, plan.at_least(6), rate) as wanted:
        made = turns(tool, wanted, started, cpu)
    return {
        "slow": median(turn.slow for turn in made),
        "run_delay_percent": 100 * mean(turn.run_delay for turn in made),
        "cpu_percent": 100 * mean(turn.cpu for turn in made),
        "turns": len(made),
    }


def summary(rounds: list[Row]) -> Row:
    """Medians and ranges of the rounds of one tool."""
    good = [row for row in rounds if "failed" not in row]
    row = {key: rounds[0][key] for key in ("tool", "python", "build", "asked")}
    if not good:
        return row | {"failed": rounds[0]["failed"]}
    for key in ("slow", "run_delay_percent", "cpu_percent"):
        row[key] = spread([one[key] for one in good])
    return row | {"rounds": len(good), "turns": sum(one["turns"] for one in good)}


def highest_rate(plan: Plan) -> list[Row]:
    """As many samples as each can take, at several depths."""
    rows = []
    for interpreter, tool in plan.pairs():
        for name, *arguments in (["alternating"], ["deep", "200"], ["deep", "800"]):
            row = base_row(interpreter, tool) | {"target": " ".join([name, *arguments])}
            rows.append(attempt(plan, row, one_highest, plan, interpreter, tool, name, *arguments))
    return rows


def one_highest(
    plan: Plan, interpreter: Interpreter, tool: tools.Tool, name: str, *arguments: str
) -> Row:
    with (
        target(interpreter, name, *arguments) as started,
        request(interpreter, started, plan.seconds, tools.MAX_RATE) as wanted,
    ):
        seen, recording = sample(tool, wanted, started)
        quality = tools.quality(recording)
    samples = sum(stack.samples for stack in recording.stacks)
    return {"delivered": samples / seen.recording_s, **cost(seen, samples), **quality}


def latency(plan: Plan) -> list[Row]:
    """From the command to data: a dump of busy code, and a recording of one second."""
    return [
        attempt(plan, base_row(interpreter, tool), one_latency, plan, interpreter, tool)
        for interpreter, tool in plan.pairs()
    ]


def one_latency(plan: Plan, interpreter: Interpreter, tool: tools.Tool) -> Row:
    with target(interpreter, "tower", pinned=False) as started:
        dumps = [timed(tool.dump(interpreter, started.pid)) for _ in range(2 * plan.rounds)]
        starts, first_samples = [], []
        for _ in range(plan.rounds):
            with request(interpreter, started, 1, 1000.0) as wanted:
                begin_ns = time.monotonic_ns()
                seconds, code = timed(tool.command(wanted))
                if code not in tool.exit_codes:
                    raise ToolError(f"exit code {code}")
                starts.append(1000 * (seconds - 1))
                first_samples += first_sample_ms(tool, wanted, begin_ns)
    row: Row = {
        "dump_ms": spread([1000 * seconds for seconds, _ in dumps]),
        "dumps_failed": sum(code not in tool.exit_codes for _, code in dumps),
        "beyond_one_second_ms": spread(starts),
    }
    if first_samples:
        row["first_sample_ms"] = spread(first_samples)
    return row


def first_sample_ms(tool: tools.Tool, wanted: tools.Request, begin_ns: int) -> list[float]:
    """From the command to its first deadline, for recordings that tell when that was."""
    file = Path(f"{wanted.output}.strobe")
    if not file.exists():
        return []
    metadata = json.loads(tools.report(file, "json").read_text())["metadata"]
    return [(metadata["start_monotonic_ns"] - begin_ns) / 1e6]


def files(plan: Plan) -> list[Row]:
    """Ten seconds at 1 kHz of ordinary work: size of the file and time to make each report."""
    return [
        attempt(plan, base_row(interpreter, tool), one_file, plan, interpreter, tool)
        for interpreter, tool in plan.pairs()
    ]


FORMATS = ("html", "speedscope", "pprof", "collapsed", "json")


def one_file(plan: Plan, interpreter: Interpreter, tool: tools.Tool) -> Row:
    with (
        target(interpreter, "realistic") as started,
        request(interpreter, started, plan.at_least(10), 1000.0) as wanted,
    ):
        _, recording = sample(tool, wanted, started)
        size, samples = os.path.getsize(recording.file), sum(s.samples for s in recording.stacks)
        row: Row = {"file": recording.file.suffix, "kb": size / 1000, "samples": samples}
        row["bytes_per_sample"] = size / samples
        if recording.file.suffix == ".strobe":
            row["report_ms"] = {form: report_ms(plan, recording.file, form) for form in FORMATS}
            row["report_kb"] = {
                form: os.path.getsize(recording.file.with_suffix(f".{form}")) / 1000
                for form in FORMATS
            }
    return row


def report_ms(plan: Plan, file: Path, form: str) -> float:
    times = []
    for _ in range(plan.rounds):
        begin = time.perf_counter()
        tools.report(file, form)
        times.append(1000 * (time.perf_counter() - begin))
    return spread(times)["median"]


def memory(plan: Plan) -> list[Row]:
    """Peak memory of the tool after a long run at 10 kHz."""
    return [
        attempt(plan, base_row(interpreter, tool), one_memory, plan, interpreter, tool)
        for interpreter, tool in plan.pairs()
    ]


def one_memory(plan: Plan, interpreter: Interpreter, tool: tools.Tool) -> Row:
    with (
        target(interpreter, "realistic") as started,
        request(interpreter, started, plan.memory_seconds, 10000.0) as wanted,
    ):
        seen = observe(tool, wanted, started, apart()[1])
    return {"seconds": plan.memory_seconds, "max_rss_mb": seen.max_rss_kb / 1024}
