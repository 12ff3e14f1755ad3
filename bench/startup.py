# SPDX-License-Identifier: Apache-2.0
"""What it takes to start: a command that only says its options, and an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import paths
import tools
from experiments import Plan, Row
from in_turns import chosen_builds, chosen_tools, environment_of, rows_in_turns
from observe import timed
from own_interpreters import Own
from pystrobe.bench._turns import Answer, ToolError, spread

#: They are so short that there can be more of them than of other runs.
RUNS_A_ROUND = 4
COMMANDS = {
    "pystrobe --help": lambda: [tools.executable(), "--help"],
    "py-spy --help": lambda: [str(paths.PEERS / "bin" / "py-spy"), "--help"],
    "austin --help": lambda: [*tools.austin_program(), "--help"],
}
PROGRAMS = {
    line: ("-c", line)
    for line in (
        *("import pystrobe", "from pystrobe import Profiler", "import pyinstrument"),
        *("import viztracer", "import yappi", "import cProfile"),
    )
}
SINCE_3_15 = {"profiling.sampling --help": ("-m", "profiling.sampling", "--help")}


def milliseconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    seconds, code = timed([*command], environment)
    if code != 0:
        raise ToolError(f"exit code {code}")
    return 1000 * seconds


def run_command(name: str) -> Answer:
    return {"ms": milliseconds(COMMANDS[name](), tools.own_environment())}


def run_program(own: Own, program: Sequence[str]) -> Answer:
    """Beside the interpreter alone, just before it."""
    environment = environment_of(own)
    # A user's has its bytecode, too.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    alone = milliseconds([*own.command, "-c", "pass"], environment)
    took = milliseconds([*own.command, *program], environment)
    return {"ms": took, "beyond_ms": took - alone}


def figures(answers: list[Answer]) -> Row:
    first, *answers = answers  # that one may have had to read from the disk and write bytecode
    return {key: spread([answer[key] for answer in answers]) for key in first} | {
        "runs": len(answers)
    }


def startup(plan: Plan) -> list[Row]:
    often = replace(plan, rounds=RUNS_A_ROUND * plan.rounds + 1)
    runs = {name: partial(run_command, name) for name in chosen_tools(plan, COMMANDS)}
    rows = rows_in_turns(often, runs, figures, build="")
    for own in chosen_builds(plan):
        programs = PROGRAMS | (SINCE_3_15 if own.version >= (3, 15) else {})
        chosen = chosen_tools(plan, programs)
        runs = {name: partial(run_program, own, programs[name]) for name in chosen}
        rows += rows_in_turns(often, runs, figures, build=own.name)
    return rows
