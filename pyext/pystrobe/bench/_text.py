# SPDX-License-Identifier: Apache-2.0
"""The figures as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pystrobe.bench._turns import Row

WORK = {
    "fib": "naive recursion, nothing but calls",
    "loop": "a loop without calls",
    "builtins": "a loop that calls len()",
    "mixed": "methods, generators, properties, exceptions, JSON",
}
HEAD = ("slow-down", "range", "ns a call", "told %", "afterwards")
LEGEND = """\
slow-down: time of the work with the profiler / without it just before and after; median of rounds
afterwards: time without it once it was there / before; ns a call: what it adds to each call
told %: which share of the calls the profiler told of (of those that count them)
none: no profiler, so what chance alone makes of the figures"""


def groups(rows: list[Row]) -> Iterator[tuple[tuple[str, str], list[Row]]]:
    """By Python and workload, as they came; in each the cheapest first, failures last."""

    def slow(row: Row) -> float:
        return float(row["slow"]["median"]) if "slow" in row else float("inf")

    for key, some in groupby(rows, lambda row: (row["python"], row["workload"])):
        yield key, sorted(some, key=slow)


def tool_of(row: Row) -> str:
    return f"{row['tool']} {row['version']}" if row.get("version") else str(row["tool"])


def cells_of(row: Row) -> tuple[str, ...]:
    """As HEAD has them; of a failure none."""
    if "failed" in row:
        return ()
    slow, more = row["slow"], row.get("ns_per_call")
    return (
        f"{slow['median']:.2f}",
        f"{slow['min']:.2f}-{slow['max']:.2f}",
        f"{round(more['median']):,}" if more else "",  # an integer: none is no -0
        f"{row['told_percent']:.3f}" if "told_percent" in row else "",
        f"{row['after']['median']:.2f}",
    )


def table(rows: list[Row]) -> str:
    lines = []
    for (python, workload), some in groups(rows):
        lines += [f"Python {python}, {workload}: {WORK[workload]}", ""]
        lines.append("".join(f"{name:>12}" for name in HEAD) + "  profiler")
        for row in some:
            cells = "".join(f"{cell:>12}" for cell in cells_of(row))
            if "failed" in row:
                cells = f"{'failed':>12}" + " " * 12 * (len(HEAD) - 1)
            lines.append(f"{cells}  {tool_of(row)}")
            if "failed" in row:
                lines.append(f"{'':>12}{row['failed']}")
        lines.append("")
    return "\n".join([*lines, LEGEND])
