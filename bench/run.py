#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the experiments and writes the figures:

    bench/run.py [EXPERIMENT...] [--python NAME...] [--tool NAME...] [--quick]

results/NAME.json holds everything, results/NAME.md the table made of it by table.py, and of tracers
results/NAME.svg a picture by plot.py. The first two are written anew after each experiment. When
one fails the results say so, the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import paths  # isort: skip
import find
import held
import inside
import native
import plot
import price
import programs
import startup
import table
import timelines
import tools
import tracers
import truth
import whole_timeline
from experiments import Plan, Row
from pystrobe.bench import _machine as machine

EXPERIMENTS = {
    "stacks": truth.stacks,
    "depths": truth.depths,
    "slowdown": price.slowdown,
    "highest_rate": price.highest_rate,
    "shares": truth.shares,
    "idle": truth.idle,
    "latency": price.latency,
    "startup": startup.startup,
    "native": native.native,
    "scripts": programs.scripts,
    "files": price.files,
    "memory": price.memory,
    "memory_inside": inside.memory_inside,
    "time_inside": inside.time_inside,
    "held": held.held,
    "tracers": tracers.tracers,
    "floors": tracers.floors,
    "timelines": timelines.timelines,
    "whole_timeline": whole_timeline.whole_timeline,
}
DEFAULT_PYTHONS = ["3.11", "3.13", "3.15"]
#: On all interpreters that there are, if none is named.
ON_ALL = ("depths", "shares", "startup", "tracers", "floors")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    parser.add_argument(
        "--python",
        nargs="+",
        metavar="NAME",
        help=f"default: {' '.join(DEFAULT_PYTHONS)}; of {', '.join(ON_ALL)}: all",
    )
    parser.add_argument("--tool", nargs="+", metavar="NAME", help="only these, by exact name")
    parser.add_argument("--seconds", type=int, default=3, help="of one recording (default 3)")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions (default 5)")
    parser.add_argument("--memory-seconds", type=int, default=60, help="(default 60)")
    parser.add_argument("--quick", action="store_true", help="to try the harness, not to quote")
    parser.add_argument("--name", default=None, help="of the result; default: the date")
    arguments = parser.parse_args()
    if unknown := set(arguments.experiments) - set(EXPERIMENTS):
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}")
    return arguments


def choose(names: list[str] | None, experiments: list[str]) -> dict[str, list[find.Interpreter]]:
    """The interpreters of each experiment."""
    by_name = {one.name: one for one in find.find()}
    chosen = {}
    missing = set()
    for experiment in experiments:
        wanted = names or (list(by_name) if experiment in ON_ALL else DEFAULT_PYTHONS)
        missing |= set(wanted) - set(by_name)
        chosen[experiment] = [by_name[name] for name in wanted if name in by_name]
    for name in sorted(missing):
        print(f"no Python {name} here: left out", file=sys.stderr)
    return chosen


def make_plan(arguments: argparse.Namespace) -> Plan:
    wanted = [tool for tool in tools.ALL if not arguments.tool or tool.name in arguments.tool]
    only = frozenset(arguments.tool or ())
    peers_on = frozenset(arguments.python or DEFAULT_PYTHONS)
    times = (1, 2, 5)
    if not arguments.quick:
        times = (arguments.seconds, arguments.rounds, arguments.memory_seconds)
    return Plan([], wanted, only, *times, peers_on, arguments.quick)


@contextmanager
def proc_in_roots(interpreters: list[find.Interpreter]) -> Iterator[None]:
    """Tools that run inside another root need /proc there."""
    roots = {one.root for one in interpreters if one.root}
    mounted = [root for root in roots if not os.path.ismount(f"{root}/proc")]
    for root in mounted:
        subprocess.run(["mount", "-t", "proc", "proc", f"{root}/proc"], check=True)
    try:
        yield
    finally:
        for root in mounted:
            subprocess.run(["umount", f"{root}/proc"], check=False)


def main() -> None:
    arguments = parse_arguments()
    # So that targets end with us, also when `timeout` ends us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    subprocess.run([str(paths.BENCH / "peers.sh"), str(paths.PEERS)], check=True)
    plan = make_plan(arguments)
    chosen = choose(arguments.python, arguments.experiments or list(EXPERIMENTS))
    name = arguments.name or time.strftime("%Y-%m-%d")
    result: dict[str, Any] = {
        "machine": machine.describe(),
        "versions": tools.versions(),
        "experiments": {},
    }
    paths.RESULTS.mkdir(exist_ok=True)
    file = paths.RESULTS / f"{name}.json"
    begin = time.perf_counter()
    with proc_in_roots([one for each in chosen.values() for one in each]):
        for number, (experiment, interpreters) in enumerate(chosen.items(), 1):
            plan.say(f"== {experiment} ({number} of {len(chosen)})")
            run_one(replace(plan, interpreters=interpreters), experiment, result)
            write(result, file)
    if rows := result["experiments"].get("tracers", {}).get("rows"):
        plot.draw(plot.medians(rows), file.with_suffix(".svg"))
    print(table.render(result))
    failed = [name for name, one in result["experiments"].items() if "failed" in one]
    plan.say(f"{duration(time.perf_counter() - begin)} for all of it, in {file}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def run_one(plan: Plan, experiment: str, result: dict[str, Any]) -> None:
    stolen, begin = machine.stolen_ticks(), time.perf_counter()
    rows: list[Row] = []
    failure = {}
    try:
        rows = EXPERIMENTS[experiment](plan)
    except Exception as error:
        traceback.print_exc()
        failure = {"failed": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - begin
    stolen_s = (machine.stolen_ticks() - stolen) / os.sysconf("SC_CLK_TCK")
    result["experiments"][experiment] = {
        "rows": rows,
        "seconds": round(seconds, 1),
        "stolen_percent": round(100 * stolen_s / seconds / (os.cpu_count() or 1), 2),
        "load": round(os.getloadavg()[0], 2),
    } | failure
    plan.say(f"   {duration(seconds)}")


def write(result: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(result, indent=1) + "\n")
    file.with_suffix(".md").write_text(table.render(result))


def duration(seconds: float) -> str:
    return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


if __name__ == "__main__":
    main()
