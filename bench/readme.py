#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of README.md, docs/tracing.md and docs/gpu.md, from the newest results of each
experiment:

    bench/readme.py [--check]

A table stands between `<!-- bench: NAME -->` and `<!-- end -->`. --check writes nothing; it exits
with 1 where one of the files says other than the results do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
FILES = [BENCH.parent / file for file in ("README.md", "docs/tracing.md", "docs/gpu.md")]

Row = dict[str, Any]
Table = list[list[str]]  # the first row is the head

#: What most of the tables are about.
PYTHON = "3.13"
RATES = (100.0, 1000.0, 10000.0)


def rows_of(experiment: str, folder: str = "results") -> list[Row]:
    """Of the newest file that has it; their names begin with the date."""
    for file in sorted((BENCH / folder).glob("20*.json"), reverse=True):
        experiments = json.loads(file.read_text()).get("experiments", {})
        if experiment in experiments:
            rows: list[Row] = experiments[experiment]["rows"]
            return rows
    raise SystemExit(f"no results of {experiment}")


def find(rows: Iterable[Row], **wanted: object) -> Row:
    """The one that is as wanted; empty where there is none, or it failed."""
    for row in rows:
        if all(row.get(key) == value for key, value in wanted.items()):
            return {} if "failed" in row else row
    return {}


def tools_in(rows: Iterable[Row]) -> list[str]:
    """In the order in which they were measured."""
    return list(dict.fromkeys(row["tool"] for row in rows))


def figure(row: Row, key: str, form: str = "{:.2f}") -> str:
    """A figure, or the median of some."""
    value = row.get(key)
    if isinstance(value, dict):
        value = value["median"]
    return "" if value is None else form.format(value)


def spread(row: Row, key: str, form: str = "{:.2f}") -> str:
    """The median and the range."""
    value = row.get(key)
    if value is None:
        return ""
    median, low, high = (form.format(value[part]) for part in ("median", "min", "max"))
    return f"{median} ({low}-{high})"


def figures(rows: Sequence[Row], key: str, form: str = "{:.2f}", unit: str = "") -> str:
    """Of several rows, one after the other."""
    return ", ".join(figure(row, key, form) + unit for row in rows if row)


def table_of(rows: Sequence[dict[str, str]]) -> Table:
    """A row by its column's titles; the first has them all."""
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def named(tool: str) -> str:
    return "nothing, for the noise" if tool == "none" else tool


def tools_by_build(rows: Sequence[Row], builds: Sequence[str]) -> list[tuple[str, str]]:
    pairs = dict.fromkeys((row["tool"], row["build"]) for row in rows)
    return [pair for build in builds for pair in pairs if pair[1] == build]


def stacks() -> Table:
    towers, chains = rows_of("stacks"), rows_of("depths")
    rows = []
    for tool, build in tools_by_build(towers, (PYTHON, "3.15")):
        who = {"tool": tool, "build": build}
        tower = [find(towers, **who, asked=rate, pinned=True) for rate in RATES[1:]]
        chain = [find(chains, **who, asked=rate) for rate in RATES[1:]]
        bias = [
            f"{figure(row, 'bias_points', '{:.1f}')} ({figure(row, 'chance_points', '{:.1f}')})"
            for row in chain
            if row
        ]
        rows.append(
            {
                "": tool,
                "Python": build,
                "impossible stacks, %": figures(tower, "impossible_percent", "{:.2g}"),
                "bias of depths, points (by chance alone)": ", ".join(bias),
                "samples/s": figures(tower, "delivered", "{:,.0f}"),
                "slow-down": figures(tower, "slow"),
                "kept waiting": figures(tower, "run_delay_percent", "{:.2g}", " %"),
                "own CPU": figures(tower, "cpu_percent", "{:.2g}", " %"),
            }
        )
    return table_of(rows)


def slowdown(folder: str, builds: Sequence[str], form: str) -> Table:
    measured = rows_of("slowdown", folder)
    rows = []
    for tool, build in tools_by_build(measured, builds):
        at = {rate: find(measured, tool=tool, build=build, asked=rate) for rate in RATES}
        rows.append(
            {"": named(tool), "Python": build}
            | {f"{rate:,.0f} Hz": spread(row, "slow", form) for rate, row in at.items()}
            | {
                "kept waiting at 1,000 Hz": figure(at[1000.0], "run_delay_percent", "{:.2g} %"),
                "own CPU": figure(at[1000.0], "cpu_percent", "{:.1f} %"),
            }
        )
    return table_of(rows)


#: Of `several`, and on which Python.
SOME = dict.fromkeys(("pystrobe", "py-spy", "Austin"), PYTHON) | {"profiling.sampling": "3.15"}
UNPAUSED = {"pystrobe": "pystrobe --pause none", "py-spy": "py-spy --nonblocking"}


def each(experiment: str, key: str, form: str, **wanted: object) -> list[str]:
    rows = rows_of(experiment)
    return [
        figure(find(rows, tool=tool, build=build, **wanted), key, form)
        for tool, build in SOME.items()
    ]


def each_unpaused(target: str) -> list[str]:
    rows = rows_of("highest_rate")
    return [
        figure(
            find(rows, tool=UNPAUSED.get(tool, tool), build=build, target=target),
            "delivered",
            "{:,.0f}",
        )
        for tool, build in SOME.items()
    ]


def several() -> Table:
    """What is told by a figure or two of each tool."""
    deep = zip(each_unpaused("deep 200"), each_unpaused("deep 800"))
    errors = zip(
        each("shares", "worst_error_points", "{:.1f}", mode="cpu"),
        each("shares", "worst_error_points", "{:.1f}", mode="wall"),
    )
    lines = {
        "64 idle threads and a busy one at 100 Hz: own CPU": each(
            "idle", "cpu_percent", "{:.1f} %"
        ),
        "... of those threads seen": each("idle", "idle_threads_seen", "{:.0f}"),
        "`dump`, ms": each("latency", "dump_ms", "{:.1f}"),
        "ten seconds of ordinary work at 1,000 Hz: bytes a sample": each(
            "files", "bytes_per_sample", "{:.1f}"
        ),
        "without pausing, as fast as it goes: samples/s at a shallow stack": each_unpaused(
            "alternating"
        ),
        "... 200 frames deep, 800 frames deep": [", ".join(filter(None, pair)) for pair in deep],
        "known shares of 50/30/20 and sleep: worst error of CPU time, of wall time, points": [
            ", ".join(filter(None, pair)) for pair in errors
        ],
    }
    head = ["", *(f"{tool}, {build}" for tool, build in SOME.items())]
    return [head, *([title, *cells] for title, cells in lines.items())]


def native() -> Table:
    measured = rows_of("native")
    rows = []
    for tool in tools_in(measured):
        of = {
            target: find(measured, tool=tool, target=target, asked=1000.0, build=PYTHON)
            for target in ("fib", "callbacks", "native")
        }
        cost = {
            target: f"{figure(row, 'slow')}, {figure(row, 'cpu_percent', '{:.0f} %')}"
            for target, row in of.items()
        }
        share = figure(of["native"], "digest_percent", "{:.1f} %")
        truth = figure(of["native"], "digest_truth_percent", "{:.1f} %")
        rows.append(
            {
                "": tool,
                "`fib`: slow-down, own CPU": cost["fib"],
                "calls through C and back": cost["callbacks"],
                "two threads, one of them in C": cost["native"],
                "of that one's CPU time, one function's (truth)": f"{share} ({truth})",
            }
        )
    return table_of(rows)


def scripts() -> Table:
    measured = rows_of("scripts")
    rows = []
    for tool, rate in dict.fromkeys((row["tool"], row["asked"]) for row in measured):
        fib, mixed = (
            find(measured, tool=tool, asked=rate, workload=name) for name in ("fib", "mixed")
        )
        rows.append(
            {
                "": named(tool),
                "Hz": f"{rate:,.0f}" if rate else "",
                "`fib`": spread(fib, "slow_cpu"),
                "JSON, text, sorting, compression": spread(mixed, "slow_cpu"),
                "native of `fib`": figure(fib, "native_percent", "{:.1f} %"),
            }
        )
    return table_of(rows)


#: Where figures of both are told.
MACHINES = {"results": "", "results/elsewhere": ", plain VM"}


def time_inside() -> Table:
    measured = {folder: rows_of("time_inside", folder) for folder in MACHINES}
    rows = []
    for tool in tools_in(measured["results"]):
        row = {"": named(tool)}
        for folder, where in MACHINES.items():
            for workload, title in (("fib", "`fib`"), ("mixed", "second script")):
                found = find(measured[folder], tool=tool, workload=workload)
                row[title + where] = f"{figure(found, 'cpu')}, {figure(found, 'elapsed')}"
        rows.append(row)
    return table_of(rows)


def held() -> Table:
    """Of the oldest Python that each machine was measured with."""
    measured = {folder: rows_of("held", folder) for folder in MACHINES}
    rows = []
    for tool in tools_in(measured["results"]):
        row = {"": tool}
        for folder, where in MACHINES.items():
            for depth in (20, 200):
                found = find(measured[folder], tool=tool, depth=depth)
                median, p99 = (figure(found, key, "{:.1f}") for key in ("median_us", "p99_us"))
                row[f"{depth} frames{where}"] = f"{median}, {p99}"
        rows.append(row)
    return table_of(rows)


def memory_inside() -> Table:
    """While it samples, and at the most, which is when it ends."""
    measured = rows_of("memory_inside")
    rows = []
    for tool in tools_in(measured):
        row = {"": tool}
        for threads in (1, 64):
            found = find(measured, tool=tool, threads=threads)
            row[f"{threads} busy thread{'s' if threads > 1 else ''}"] = ", ".join(
                figure(found, key, "{:.1f}") for key in ("sampling_mb", "peak_mb")
            )
        rows.append(row)
    return table_of(rows)


def timelines() -> Table:
    """Of the most calls that were tried."""
    measured = rows_of("timelines")
    most = max(row.get("calls", 0) for row in measured)
    rows = []
    for tool in tools_in(measured):
        found = find(measured, tool=tool, calls=most)
        sizes = found.get("bytes_per_call", {})
        rows.append(
            {
                "": tool,
                "slow-down": spread(found, "slow"),
                "ns a call": spread(found, "ns_per_call", "{:,.0f}"),
                "calls kept": figure(found, "kept_percent", "{:.1f} %"),
                "bytes a kept call": ", ".join(
                    f"{form} {size:.2f}" for form, size in sizes.items()
                ),
            }
        )
    return table_of(rows)


def whole_timeline() -> Table:
    row = find(rows_of("whole_timeline"), tool="pystrobe")
    return table_of(
        [
            {
                "Python": row["python"],
                "calls": figure(row, "calls", "{:,.0f}"),
                "kept": figure(row, "kept_percent", "{:.6f} %"),
                "slow-down": spread(row, "slow"),
                "more memory": figure(row, "more_mb", "{:.1f} MB"),
                "bytes a call": figure(row, "bytes_per_call"),
            }
        ]
    )


def minor(build: str) -> int:
    return int(build.split(".")[1])


def traced(workload: str, tools: Sequence[str], ranges_of: str = "") -> Table:
    """Of one of the tools the ranges too."""
    rows = [row for row in rows_of("tracers") if row["workload"] == workload]
    builds = sorted({row["build"] for row in rows}, key=minor)
    table = [["", *builds]]
    for tool in tools:
        cells = []
        for build in builds:
            there = [row for row in rows if row["tool"] == tool and row["build"] == build]
            failed = any("failed" in row for row in there)
            cell = spread if tool == ranges_of else figure
            row = find(there)
            form = "{:.2f}" if row and row["slow"]["median"] < 10 else "{:.1f}"
            cells.append("failed" if failed else cell(row, "slow", form))
        table.append([named(tool), *cells])
    return table


#: Of which docs/tracing.md tells; those of fib are all of them.
TRACERS = (
    *("none", "pystrobe", "pystrobe builtins", "cProfile", "VizTracer", "yappi wall"),
    *("empty fast hook", "fast hook with clock"),
)


#: What is called, then of which workload: a hook that does nothing, one that reads the clock, ours.
PARTS = {
    "a Python function": ("fib", "empty fast hook", "fast hook with clock", "pystrobe"),
    "the same, by `PyEval_SetProfile`": (
        *("fib", "empty C hook", "C hook with clock"),
        "pystrobe setprofile",
    ),
    "a function of C": ("builtins", None, "hook of builtins with clock", "pystrobe builtins"),
}


def parts() -> Table:
    """Of what `pystrobe bench` said on a machine with little else to do."""
    file = max((BENCH / "results/elsewhere").glob("20*-bench.json"))
    measured: list[Row] = json.loads(file.read_text())["rows"]
    rows = []
    for called, (workload, empty, clock, ours) in PARTS.items():
        of = {
            tool: figure(find(measured, workload=workload, tool=tool), "ns_per_call", "{:.0f}")
            for tool in (empty, clock, ours, "cProfile")
        }
        rows.append(
            {
                "ns a call of": called,
                "a hook that does nothing": of[empty],
                "and reads the clock": of[clock],
                "pystrobe": of[ours],
                "cProfile": of["cProfile"],
            }
        )
    return table_of(rows)


def on_device() -> dict[str, Any]:
    """What bench/gpu/run_on_device.sh found last."""
    newest = max((BENCH / "results").glob("20*-device.json"))
    found: dict[str, Any] = json.loads(newest.read_text())
    return found


#: What bench/gpu/launch_cost.py calls them, as users write it.
GPU_PROFILERS = {
    "pystrobe": '`mode="gpu"`',
    "pystrobe, CPU time too": "`gpu=True`: CPU time too",
    "pystrobe, launches": '`gpu="launches"`',
}


def gpu_cost(names: Sequence[str] = ()) -> Table:
    """While each profiler runs, and once it has ended; of all where none are named."""
    costs = on_device()["kernels"]["cost"]
    rows = []
    for name in names or costs:
        row = {"": f"pystrobe, {GPU_PROFILERS[name]}" if name in GPU_PROFILERS else name}
        for work, cost in costs[name].items():
            row[work] = f"{cost['on']:.2f}, {cost['after']:.2f}" if cost else "not measured"
        rows.append(row)
    return table_of(rows)


def gpu_above_cupti() -> Table:
    """Each of ours by CUPTI alone, in turn in one process."""
    rows = []
    for name, costs in on_device()["kernels"]["cost"].items():
        if not any(cost and "above_cupti" in cost for cost in costs.values()):
            continue
        row = {"": f"pystrobe, {GPU_PROFILERS[name]}"}
        for work, cost in costs.items():
            row[work] = f"{cost['above_cupti']:.2f}" if cost else "not measured"
        rows.append(row)
    return table_of(rows)


def gpu_short_kernels() -> Table:
    return table_of(
        [
            {
                "kernel of": f"{row['cycles']:,} cycles",
                "`measure`, less an empty one": f"{row['net_us']:.2f} us",
                "CUPTI's record, less one": f"{row['record_net_us']:.2f} us",
                "noise": f"{100 * row['noise']:.2f} %",
                "by hand": f"{row['by_hand_us']:.2f} us",
                "do_bench": f"{row['do_bench_us']:.2f} us",
            }
            for row in on_device()["gpu"]["short kernels"]
        ]
    )


TABLES: dict[str, Callable[[], Table]] = {
    "stacks": stacks,
    "slowdown": lambda: slowdown("results", (PYTHON, "3.15"), "{:.2f}"),
    "slowdown_elsewhere": lambda: slowdown("results/elsewhere", ("3.11", PYTHON), "{:.3f}"),
    "several": several,
    "native": native,
    "scripts": scripts,
    "time_inside": time_inside,
    "held": held,
    "memory_inside": memory_inside,
    "timelines": timelines,
    "whole_timeline": whole_timeline,
    "traced_fib": lambda: traced(
        "fib",
        [
            "pystrobe",
            "cProfile",
            "profiling.tracing",
            "VizTracer without C",
            "yappi wall",
            "yappi cpu",
        ],
    ),
    "traced_mixed": lambda: traced("mixed", ["pystrobe", "cProfile", "VizTracer", "yappi wall"]),
    "tracers_fib": lambda: traced(
        "fib",
        [
            *("none", "pystrobe", "pystrobe, excluded", "pystrobe builtins", "pystrobe setprofile"),
            *("cProfile", "profiling.tracing", "VizTracer without C", "VizTracer"),
            *("yappi wall", "yappi cpu", "sys.setprofile", "empty C hook"),
            *("empty fast hook", "fast hook with clock", "line_profiler", "pyinstrument"),
        ],
        ranges_of="pystrobe",
    ),
    "tracers_parts": parts,
    "gpu_cost": gpu_cost,
    "gpu_above_cupti": gpu_above_cupti,
    "gpu_cost_short": lambda: gpu_cost(
        [
            *("pystrobe", "pystrobe, launches", "CUPTI alone, with records"),
            *("torch.profiler, CUDA", "torch.profiler, with_stack", "Proton, Python paths"),
        ]
    ),
    "gpu_short_kernels": gpu_short_kernels,
    "tracers_mixed": lambda: traced("mixed", TRACERS),
    "tracers_builtins": lambda: traced("builtins", TRACERS),
}


def markdown(table: Table) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return [lines[0], "|" + " --- |" * len(table[0]), *lines[1:]]


def filled(text: str) -> str:
    """`text` with the tables between its marks made anew."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line == "<!-- end -->":
            inside = False
        if not inside:
            lines.append(line)
        if line.startswith("<!-- bench: "):
            inside = True
            lines += markdown(TABLES[line.split()[2]]())
    return "\n".join(lines) + "\n"


def main() -> None:
    for file in FILES:
        said = file.read_text()
        now = filled(said)
        if "--check" not in sys.argv[1:]:
            file.write_text(now)
        elif said != now:
            raise SystemExit(f"{file.name} says other than bench/results do: run bench/readme.py")


if __name__ == "__main__":
    main()
