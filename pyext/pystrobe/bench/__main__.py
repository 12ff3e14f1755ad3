# SPDX-License-Identifier: Apache-2.0
"""The command: options, runs, and what is said of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

from pystrobe._errors import InvalidArgumentError
from pystrobe.bench import _machine
from pystrobe.bench._interpreters import Interpreter, interpreters
from pystrobe.bench._page import page
from pystrobe.bench._progress import Progress
from pystrobe.bench._text import table
from pystrobe.bench._traced import TOOLS
from pystrobe.bench._turns import (
    ATTACHED,
    OURS,
    SAMPLING,
    UNITS,
    Row,
    figures,
    in_turns,
    program,
    row_of,
    samplers_for,
    tools_for,
)

_DESCRIPTION = """\
Measures what it costs on this machine to profile a program of calls: with each
engine of pystrobe's tracer, with its samplers, from inside and from outside,
and with other profilers. Each run is a process of its own on one CPU, which
times its work with the profiler and without it, by turns of hundredths of a
second; the profilers take turns too. Nothing is installed: others are measured
where the interpreter, or the PATH, has them."""
_EPILOG = """\
examples:
  pystrobe bench                                a quarter of an hour, on a quiet
                                                machine
  pystrobe bench --peers none --workloads fib   pystrobe alone: a minute
  pystrobe bench --pythons 3.9,3.13 -o overhead.html

others to measure, by pip:
  viztracer yappi line_profiler pyinstrument py-spy austin-dist"""
_ALWAYS = ("none", *OURS, SAMPLING, ATTACHED)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pystrobe bench",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--pythons", type=_names, default=[], metavar="NAMES", help="as 3.9,3.13 or paths")
    add("--peers", default="all", metavar="NAMES", help="all (default), none, or some, with commas")
    add("--workloads", type=_names, default=list(UNITS), metavar="NAMES", help=", ".join(UNITS))
    add(
        "--rounds", type=int, default=5, metavar="N", help="processes for each profiler (default 5)"
    )
    add("--quick", action="store_true", help="a tenth of the work: tries it, means nothing")
    add(
        "-o",
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help=".html, or .json with all figures; may be given twice",
    )
    add("--force", action="store_true", help="overwrite the files")
    add("-q", "--quiet", action="store_true", help="do not tell what is being measured")
    return parser


def _check(options: argparse.Namespace) -> None:
    """:raises InvalidArgumentError: one of the options makes no sense."""
    for workload in options.workloads:
        if workload not in UNITS:
            raise InvalidArgumentError(
                f"there is no workload {workload!r}", f"they are {', '.join(UNITS)}"
            )
    if options.rounds < 1:
        raise InvalidArgumentError(f"--rounds {options.rounds}", "name one or more")
    for output in options.output:
        _check_output(output, options.force)


def _check_output(output: Path, force: bool) -> None:
    if output.suffix not in (".html", ".json"):
        raise InvalidArgumentError(
            f"{output} is no page and no list of figures", "end it in .html or .json"
        )
    if output.exists() and not force:
        raise InvalidArgumentError(f"{output} exists already", "name another, or add --force")
    if not os.access(output.parent, os.W_OK | os.X_OK):
        raise InvalidArgumentError(
            f"{output}: {output.parent} is missing or cannot be written", "name another folder"
        )


def _peers(text: str) -> set[str]:
    known = set(TOOLS) - set(_ALWAYS)
    if text in ("all", "none"):
        return known if text == "all" else set()
    chosen = set(_names(text))
    if unknown := sorted(chosen - known):
        raise InvalidArgumentError(
            f"there is no peer {unknown[0]!r}", f"they are {', '.join(sorted(known))}"
        )
    return chosen


def _tools(python: Interpreter, workload: str, peers: set[str], by_name: bool) -> list[str]:
    """Peers asked for by name in any case; else those that are there."""
    return [
        tool
        for tool in tools_for(python.version, workload) + samplers_for(python.version, workload)
        if tool in _ALWAYS or (tool in peers and (by_name or python.has(tool)))
    ]


def _measure(
    pythons: list[Interpreter], copy: Path, peers: set[str], options: argparse.Namespace
) -> list[Row]:
    plan = [
        (python, workload, _tools(python, workload, peers, options.peers != "all"))
        for python in pythons
        for workload in options.workloads
    ]
    progress = Progress(options.rounds * sum(len(names) for _, _, names in plan), options.quiet)
    rows: list[Row] = []
    for python, workload, names in plan:
        progress.begin(f"Python {python.name}, {workload}", len(names))
        runs = {
            name: progress.told(name, partial(python.run, copy, name, workload, options.quick))
            for name in names
        }
        for name, answers in in_turns(runs, options.rounds).items():
            row: Row = {"python": python.name, "workload": workload, "tool": name}
            rows.append(row | row_of(answers, figures))
        progress.end()
    return rows


def _machine_line() -> str:
    facts = _machine.describe()
    kind = "virtual machine" if facts["virtual"] else "machine"
    return (
        f"{kind} with {facts['cpus']} CPUs ({facts['processor']}), {facts['system']}, "
        f"kernel {facts['kernel']}, load {os.getloadavg()[0]:.2f} at the end"
    )


def _write(output: Path, rows: list[Row], machine: str) -> bool:
    """Returns whether it could be; why not is said."""
    if output.suffix == ".html":
        text = page(rows, machine)
    else:
        text = json.dumps({"machine": _machine.describe(), "rows": rows}, indent=1) + "\n"
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"pystrobe: {output}: {error.strerror}", file=sys.stderr)
        return False
    print(f"pystrobe: wrote {output}", file=sys.stderr)
    return True


def main() -> int:
    """Returns the exit status: 1 where a profiler of ours failed, or nothing could be written."""
    options = _parser().parse_args()
    try:
        _check(options)
        peers = _peers(options.peers)
        pythons = interpreters(options.pythons)
        with program() as copy:
            rows = _measure(pythons, copy, peers, options)
    except InvalidArgumentError as error:
        print(f"pystrobe: {error.message}\n  {error.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    machine = _machine_line()
    print(f"{machine}\n\n{table(rows)}")
    if options.quick:
        print("--quick: a tenth of the work, so these figures mean nothing")
    written = [_write(output, rows, machine) for output in options.output]
    return int(not all(written) or any("failed" in row and row["tool"] in _ALWAYS for row in rows))


if __name__ == "__main__":
    sys.exit(main())
