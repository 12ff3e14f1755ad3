#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Markdown of a result: bench/table.py results/NAME.json"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]


def number(key: str, form: str = "{:,.2f}") -> Callable[[Row], str]:
    """A figure, or "median (min-max)"; empty where the row has none."""

    def cell(row: Row) -> str:
        value = row.get(key)
        if value is None:
            return ""
        if isinstance(value, dict):
            median, low, high = (form.format(value[part]) for part in ("median", "min", "max"))
            return f"{median} ({low}-{high})"
        return form.format(value)

    return cell


def text(key: str) -> Callable[[Row], str]:
    return lambda row: str(row.get(key, ""))


def ours(key: str, form: str = "{:,.0f}") -> Callable[[Row], str]:
    """A figure of pystrobe's own quality report."""
    return lambda row: form.format(row["quality"][key]) if "quality" in row else ""


def by_chance(row: Row) -> str:
    return f"{row['chance_points']:.2f} (at most {row['chance_most_points']:.2f})"


def version(row: Row) -> str:
    return row.get("version") or ""


def placement(row: Row) -> str:
    return "apart" if row["pinned"] else "free"


def formats(key: str, form: str = "{:.0f}") -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return ", ".join(f"{name} {form.format(value)}" for name, value in row.get(key, {}).items())

    return cell


WHO: list[Column] = [("tool", text("tool")), ("Python", text("build"))]
COST: list[Column] = [
    ("slow-down", number("slow")),
    ("run delay %", number("run_delay_percent")),
    ("CPU %", number("cpu_percent", "{:.1f}")),
]
TABLES: dict[str, tuple[str, list[Column]]] = {
    "stacks": (
        "Call tower: impossible stacks",
        [
            *WHO,
            ("asked Hz", number("asked", "{:,.0f}")),
            ("CPUs", placement),
            ("delivered/s", number("delivered", "{:,.0f}")),
            ("impossible %", number("impossible_percent", "{:.3f}")),
            ("impossible with lines %", number("wrong_lines_percent", "{:.3f}")),
            *COST,
            ("us/sample", number("cpu_us_per_sample", "{:.0f}")),
            ("marked", ours("marked")),
            ("late", ours("late")),
            ("lost", ours("lost")),
        ],
    ),
    "depths": (
        "Call chain: bias of the depths against the program's own clock",
        [
            *WHO,
            ("asked Hz", number("asked", "{:,.0f}")),
            ("samples", number("samples", "{:,.0f}")),
            ("bias, points", number("bias_points")),
            ("by chance alone (in 99 of 100)", by_chance),
            ("truth before against after", number("truth_points")),
            *COST,
            ("lost", ours("lost")),
        ],
    ),
    "slowdown": (
        "Slow-down of fib, by turns with the tool and without",
        [
            *WHO,
            ("asked Hz", number("asked", "{:,.0f}")),
            ("slow-down", number("slow", "{:.3f}")),
            *COST[1:],
            ("turns", text("turns")),
        ],
    ),
    "highest_rate": (
        "Highest rate",
        [
            *WHO,
            ("target", text("target")),
            ("delivered/s", number("delivered", "{:,.0f}")),
            ("us/sample", number("cpu_us_per_sample", "{:.1f}")),
            *COST,
        ],
    ),
    "shares": (
        "Known shares of time (50/30/20 and sleep)",
        [
            *WHO,
            ("mode", text("mode")),
            ("worst error, points", number("worst_error_points")),
            ("sleep %", number("nap_percent", "{:.1f}")),
            ("sleep, truth %", number("nap_truth_percent", "{:.1f}")),
        ],
    ),
    "idle": (
        "64 idle threads and a busy one, 100 Hz",
        [
            *WHO,
            ("idle threads seen", number("idle_threads_seen", "{:.1f}")),
            ("samples of the busy one", number("busy_samples", "{:.0f}")),
            *COST,
        ],
    ),
    "latency": (
        "From the command to data, ms",
        [
            *WHO,
            ("dump", number("dump_ms", "{:.1f}")),
            ("dumps failed", text("dumps_failed")),
            ("first sample", number("first_sample_ms", "{:.1f}")),
            ("1 s recording: time beyond", number("beyond_one_second_ms", "{:.0f}")),
        ],
    ),
    "startup": (
        "Starts, ms",
        [
            *WHO,
            ("took", number("ms", "{:.1f}")),
            ("beyond the interpreter alone", number("beyond_ms", "{:.1f}")),
            ("runs", text("runs")),
        ],
    ),
    "native": (
        "C functions of another process",
        [
            *WHO,
            ("target", text("target")),
            ("asked Hz", number("asked", "{:,.0f}")),
            ("delivered/s", number("delivered", "{:,.0f}")),
            ("lost or not merged", text("errors")),
            ("digest %", number("digest_percent", "{:.1f}")),
            ("digest, truth %", number("digest_truth_percent", "{:.1f}")),
            *COST,
        ],
    ),
    "scripts": (
        "Whole scripts: time of their work, as a multiple of what it takes alone",
        [
            ("profiler", text("tool")),
            ("script", text("workload")),
            ("asked Hz", number("asked", "{:,.0f}")),
            ("elapsed", number("slow", "{:.3f}")),
            ("CPU of its thread", number("slow_cpu", "{:.3f}")),
            ("native code, %", number("native_percent", "{:.1f}")),
        ],
    ),
    "files": (
        "Ten seconds at 1 kHz of ordinary work",
        [
            *WHO,
            ("file", text("file")),
            ("kB", number("kb", "{:,.0f}")),
            ("samples", number("samples", "{:,.0f}")),
            ("bytes/sample", number("bytes_per_sample", "{:.1f}")),
            ("reports, ms", formats("report_ms")),
            ("reports, kB", formats("report_kb")),
        ],
    ),
    "tracers": (
        "Every call traced",
        [
            ("workload", text("workload")),
            *WHO,
            ("version", version),
            ("slow-down", number("slow")),
            ("afterwards", number("after")),
            ("ns a call", number("ns_per_call", "{:,.0f}")),
            ("calls told %", number("told_percent", "{:.3f}")),
            ("release", text("release")),
        ],
    ),
    "timelines": (
        "Each call by itself: fib",
        [
            *WHO,
            ("version", version),
            ("calls", number("calls", "{:,.0f}")),
            ("slow-down", number("slow")),
            ("ns a call", number("ns_per_call", "{:,.0f}")),
            ("calls kept %", number("kept_percent", "{:.3f}")),
            ("bytes a kept call", formats("bytes_per_call", "{:.2f}")),
            ("save, s", formats("save_s", "{:.2f}")),
        ],
    ),
    "whole_timeline": (
        "Each call by itself: all calls of fib(20), 3,000 times",
        [
            ("Python", text("python")),
            ("calls", number("calls", "{:,.0f}")),
            ("calls kept %", number("kept_percent", "{:.6f}")),
            ("slow-down", number("slow")),
            ("more memory, MB", number("more_mb", "{:.1f}")),
            ("bytes a call", number("bytes_per_call", "{:.2f}")),
            ("report, s", number("report_s", "{:.1f}")),
            ("report, MB", number("report_mb", "{:.0f}")),
        ],
    ),
    "time_inside": (
        "Blocks of work that a program samples itself in, as multiples of their neighbours",
        [
            *WHO,
            ("script", text("workload")),
            ("CPU of its thread", number("cpu", "{:.3f}")),
            ("elapsed", number("elapsed", "{:.3f}")),
        ],
    ),
    "held": (
        "For how long a sample at 1 kHz holds its thread",
        [
            *WHO,
            ("depth", text("depth")),
            ("samples", number("samples", "{:,.0f}")),
            ("median us", number("median_us", "{:.1f}")),
            ("99th percentile us", number("p99_us", "{:.1f}")),
        ],
    ),
    "memory_inside": (
        "Memory that a program takes more for as it samples itself for a second, MB",
        [
            *WHO,
            ("busy threads", text("threads")),
            ("sampling", number("sampling_mb", "{:.1f}")),
            ("and its end", number("peak_mb", "{:.1f}")),
            ("left", number("left_mb", "{:.1f}")),
        ],
    ),
    "memory": (
        "Memory at 10 kHz",
        [
            *WHO,
            ("seconds", number("seconds", "{:.0f}")),
            ("peak MB", number("max_rss_mb", "{:.0f}")),
        ],
    ),
}


def markdown(columns: list[Column], rows: Iterable[Row]) -> list[str]:
    lines = ["| " + " | ".join(title for title, _ in columns) + " |"]
    lines.append("|" + " --- |" * len(columns))
    for row in rows:
        if "failed" in row:
            reason = " ".join(row["failed"].split()).replace("|", "/")[:120]
            lines.append(f"| {row['tool']} | {row['build']} | failed: {reason} |")
            continue
        lines.append("| " + " | ".join(cell(row) for _, cell in columns) + " |")
    return lines


def builds(rows: Iterable[Row]) -> list[str]:
    """A line for each interpreter of which it was asked."""
    known = {row["release"]: row for row in rows if "release" in row}
    return [
        f"- {release}: {row['compiler']}, {row['configured'] or 'configured with no options'}"
        for release, row in known.items()
    ] + [""] * bool(known)


def render(result: dict[str, Any]) -> str:
    machine, versions = result["machine"], result["versions"]
    kind = "virtual machine" if machine["virtual"] else "machine"
    lines = [
        "# Figures",
        "",
        f"{kind} with {machine['cpus']} CPUs ({machine['processor']}), {machine['memory']},",
        f"{machine['system']}, kernel {machine['kernel']}, glibc {machine['glibc']}.",
        "Versions: " + "; ".join(f"{name}: {version}" for name, version in versions.items()) + ".",
        "Ranges are over alternated rounds: median (min-max).",
    ]
    for experiment, (title, columns) in TABLES.items():
        measured = result["experiments"].get(experiment)
        if not measured:
            continue
        lines += ["", f"## {title}", "", *markdown(columns, measured["rows"]), ""]
        if "failed" in measured:
            lines += [f"Failed: {measured['failed']}", ""]
        lines += builds(measured["rows"])
        lines.append(
            f"Taken in {measured['seconds']:.0f} s; the host took {measured['stolen_percent']} % "
            f"of the CPU time away; load {measured['load']}."
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render(json.loads(Path(sys.argv[1]).read_text())), end="")
