# SPDX-License-Identifier: Apache-2.0
"""The interpreters to measure on, and the profilers that each has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pystrobe._errors import InvalidArgumentError
from pystrobe.bench._traced import COMMANDS, TOOLS
from pystrobe.bench._turns import Answer, ToolError, answer_of, words_of

TIMEOUT_S = 180
_PROBE = """
import importlib.util, json, sys
def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
print(json.dumps([sys.version_info[:3], [name for name in sys.argv[1:] if is_there(name)]]))
"""


@dataclass(frozen=True)
class Interpreter:
    path: str
    version: tuple[int, ...]
    modules: frozenset[str]  #: of those that tools are in

    @property
    def name(self) -> str:
        return ".".join(map(str, self.version))

    def has(self, tool: str) -> bool:
        module = TOOLS[tool][0]
        if tool in COMMANDS and shutil.which(COMMANDS[tool]) is None:
            return False
        return module is None or module in self.modules

    def run(self, program: Path, tool: str, workload: str, quick: bool) -> Answer:
        """The program of :mod:`pystrobe.bench._turns`, on one CPU.

        :raises ToolError: the tool does not work there.
        """
        if not self.has(tool):
            raise ToolError(f"not installed for {self.path}")
        cpu = max(os.sched_getaffinity(0))
        return answer_of(
            [self.path, str(program), *words_of(tool, workload, quick)],
            TIMEOUT_S,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )


def _path_of(name: str) -> str:
    # "3.13" is python3.13; what has a slash is a path, and the rest a command.
    command = f"python{name}" if name[:1].isdigit() else name
    path = shutil.which(command)
    if path is None:
        raise InvalidArgumentError(
            f"there is no Python {name!r}: no {command} is on the PATH",
            "name one as 3.13 or by its path; without --pythons it is the one that has pystrobe",
        )
    return path


def _probe(path: str, modules: Iterable[str]) -> Interpreter:
    done = subprocess.run(
        [path, "-c", _PROBE, *modules], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    try:
        version, found = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        why = said[-1 if said[0].startswith("Traceback") else 0]
        raise InvalidArgumentError(
            f"{path} is no Python that works: {why}", "name another"
        ) from None
    if tuple(version) < (3, 9):
        raise InvalidArgumentError(
            f"{path} is Python {version[0]}.{version[1]}", "name one from 3.9 on"
        )
    return Interpreter(path, tuple(version), frozenset(found))


def interpreters(names: list[str]) -> list[Interpreter]:
    """Those named, or this one.

    :raises InvalidArgumentError: one is not there, or is none.
    """
    modules = sorted({module for module, _ in TOOLS.values() if module is not None})
    paths = [_path_of(name) for name in names] or [sys.executable]
    return [_probe(path, modules) for path in dict.fromkeys(paths)]
