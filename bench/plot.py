#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture of what tracers cost: bench/plot.py results/NAME.json PICTURE.svg"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

OURS = "#c2410c"
OTHERS = "#475569"
TICKS = [1, 1.5, 2, 3, 5, 10, 20, 50]


def medians(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of fib, by interpreter and tool; failures are left out, as the table tells of them."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["workload"] == "fib" and "slow" in row and row["tool"] != "none":
            found.setdefault(row["build"], {})[row["tool"]] = row["slow"]["median"]
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def draw(by_python: dict[str, dict[str, float]], path: Path) -> None:
    count = len(by_python)
    figure, all_axes = pyplot.subplots(1, count, figsize=(2.6 * count, 3.6), sharey=True)
    names = sorted(
        {name for tools in by_python.values() for name in tools},
        key=lambda name: -min(tools.get(name, 999.0) for tools in by_python.values()),
    )
    for axes, (python, tools) in zip(all_axes if count > 1 else [all_axes], by_python.items()):
        for place, name in enumerate(names):
            if name not in tools:
                axes.text(1.05, place, "-", va="center", fontsize=7, color=OTHERS)
                continue
            color = OURS if name.startswith("pystrobe") else OTHERS
            axes.barh(place, tools[name] - 1, left=1, color=color, height=0.7)
            axes.text(tools[name] * 1.06, place, f"{tools[name]:.2f}", va="center", fontsize=7)
        axes.set_xscale("log")
        axes.set_xlim(1, 160)
        axes.xaxis.set_major_locator(FixedLocator(TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.tick_params(axis="x", labelsize=6)
        axes.set_title(f"Python {python}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    pyplot.yticks(range(len(names)), names, fontsize=8)
    figure.suptitle("Slow-down of naive fib(20), every call traced (1 = untraced)", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    result = json.loads(Path(sys.argv[1]).read_text())
    draw(medians(result["experiments"]["tracers"]["rows"]), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
