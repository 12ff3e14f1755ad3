# SPDX-License-Identifier: Apache-2.0
"""Which stacks a target can have at all.

The truth stands in the targets' own sources: a line that calls something ends in `# -> callee`
(names or files, as patterns), and a function that the standard library may call back is marked
`# entry`, one that the garbage collector may call at any moment `# anywhere`. Which lines a
function can be on is asked of the interpreter that runs the target.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from collapsed import Frame, Stack

HERE = Path(__file__).resolve().parent
TARGETS = HERE.parent / "targets"
CALL = re.compile(r"# -> (?P<callees>.*)$")
ENTRY = re.compile(r"\s*(?:async )?def (?P<name>\w+).*# entry$")
ANYWHERE = re.compile(r"\s*def (?P<name>\w+).*# anywhere$")
# Where the stack of a thread may begin besides a module of the target.
THREAD_ROOTS = {("_bootstrap", "threading.py")}
# Run by the garbage collector, whatever the program does at that moment.
COLLECTED = {("_remove", "_weakrefset.py"), ("remove", "weakref.py")}
# What stands for a code object that was dropped before its name could be read.
GONE = "<code object gone>"
# What stands for the callers that a copy did not reach.
INCOMPLETE = "<incomplete stack>"
OWNED_UP = "a piece of a stack"
ALWAYS_IMPORTED = ["_weakrefset", "contextlib", "functools", "selectors", "threading", "weakref"]


class Verdict(NamedTuple):
    """Counts of samples by what the oracle says of them."""

    possible: int
    impossible: Counter[str]  # by reason
    unseen: int = 0  # of no look, in neither of them

    @property
    def total(self) -> int:
        return self.possible + self.impossible.total()

    @property
    def owned_up(self) -> int:
        """Of the impossible: pieces of possible stacks, which the recording shows as such."""
        return self.impossible[OWNED_UP]

    def describe(self) -> str:
        lines = [f"{self.impossible.total()} impossible of {self.total}"]
        lines += [f"{n:8} {reason}" for reason, n in self.impossible.most_common(12)]
        return "\n".join(lines)


def load_target(name: str) -> ModuleType:
    if str(TARGETS) not in sys.path:
        sys.path.insert(0, str(TARGETS))
    spec = importlib.util.spec_from_file_location(f"target_{name}", TARGETS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def target_sources(name: str) -> list[tuple[str, str]]:
    sources = [(f"{file}.py", (TARGETS / f"{file}.py").read_text()) for file in (name, "control")]
    module = load_target(name)
    if hasattr(module, "sources"):
        sources += module.sources()
    return sources


def imported_modules(text: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name != "control"]


class Oracle:
    """Says of each stack of one target under one interpreter whether it can be, and why not."""

    def __init__(self, target: str, python: Sequence[str]) -> None:
        self.target = target
        sources = target_sources(target)
        self._own = {file for file, _ in sources}
        self._drops_code = "exec(" in sources[0][1] and target != "tower"
        self.has_threads = "threading" in imported_modules(sources[0][1])
        self._calls: dict[tuple[str, int], list[str]] = {}
        self._entries: set[tuple[str, str]] = set()
        self._anywhere = {(file, name) for name, file in COLLECTED}
        for file, text in sources:
            self._read_annotations(file, text)
        self._lines: dict[tuple[str, str], set[int]] = {}
        self._foreign_files: set[str] = set()
        self._ask_interpreter(python, sources)

    def _read_annotations(self, file: str, text: str) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            if match := CALL.search(line):
                callees = [callee.strip() for callee in match["callees"].split(",")]
                self._calls.setdefault((file, number), []).extend(callees)
            if match := ENTRY.match(line):
                self._entries.add((file, match["name"]))
            if match := ANYWHERE.match(line):
                self._anywhere.add((file, match["name"]))

    def _ask_interpreter(self, python: Sequence[str], sources: list[tuple[str, str]]) -> None:
        modules = sorted({*ALWAYS_IMPORTED, *imported_modules(sources[0][1])})
        program = (HERE / "code_lines.py").read_text()
        done = subprocess.run(
            [*python, "-c", program],
            input=json.dumps({"sources": sources, "modules": modules}),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for file, name, qualified, _, lines in json.loads(done.stdout):
            for key in {name, qualified.rsplit(".", 1)[-1]}:
                self._lines.setdefault((file, key), set()).update(lines)
            if file not in self._own:
                self._foreign_files.add(file)

    def why_impossible(self, frames: Sequence[Frame], lines: bool = True) -> str | None:
        """None when the stack (root first) can be. Without `lines`, only functions are judged."""
        if not frames:
            # A thread that is being born, is dying, or lent itself to another interpreter.
            return None if self.has_threads else "empty stack"
        if frames[0].name == INCOMPLETE:
            return self._why_not_called(frames[1:], lines) or OWNED_UP
        return self._check_root(frames[0]) or self._why_not_called(frames, lines)

    def _why_not_called(self, frames: Sequence[Frame], lines: bool) -> str | None:
        for frame in frames:
            if reason := self._check_function(frame, lines):
                return reason
        for caller, callee in itertools.pairwise(frames):
            if reason := self._check_call(caller, callee, lines):
                return reason
        return None

    def judge(self, stacks: Iterable[Stack], lines: bool = True) -> Verdict:
        possible = unseen = 0
        impossible: Counter[str] = Counter()
        for stack in stacks:
            if not stack.looked_at:
                unseen += stack.samples
                continue
            reason = self.why_impossible(stack.frames, lines)
            if reason is None:
                possible += stack.samples
            else:
                impossible[reason] += stack.samples
        return Verdict(possible, impossible, unseen)

    def _check_root(self, frame: Frame) -> str | None:
        if frame.name == "<module>" and frame.file in self._own:
            return None
        if (frame.name, frame.file) in THREAD_ROOTS:
            return None
        return f"root {frame.name} ({frame.file})"

    def _check_function(self, frame: Frame, check_line: bool) -> str | None:
        if frame.name == GONE:
            return None if self._drops_code else "code object gone"
        lines = self._lines.get((frame.file, frame.name))
        if lines is None:
            if frame.file in self._own or frame.file in self._foreign_files:
                return f"no function {frame.name} in {frame.file}"
            return None if frame.file.startswith("<frozen ") else f"unknown file {frame.file!r}"
        if frame.line in lines or not check_line:
            return None
        return f"{frame.name} ({frame.file}) on line {frame.line}"

    def _calls_of(self, caller: Frame, on_its_line: bool) -> Iterator[str]:
        """Patterns of what the caller may be calling."""
        lines = self._lines[caller.file, caller.name]
        for line in [caller.line] if on_its_line else lines:
            yield from self._calls.get((caller.file, line), [])

    def _check_call(self, caller: Frame, callee: Frame, on_its_line: bool) -> str | None:
        if (callee.file, callee.name) in self._anywhere or GONE in (caller.name, callee.name):
            return None
        callee_is_own = callee.file in self._own
        entered = callee.name == "<module>" or (callee.file, callee.name) in self._entries
        if caller.file not in self._own:
            if not callee_is_own or entered:
                return None
            return f"{callee.name} called by {caller.file}"
        for pattern in self._calls_of(caller, on_its_line):
            if fnmatchcase(callee.name, pattern):
                return None
            if fnmatchcase(callee.file, pattern) and (entered or not callee_is_own):
                return None
        return f"{caller.name} ({caller.file}:{caller.line}) calling {callee.name}"


def depth_shares(stacks: Iterable[Stack], depth: int) -> list[float]:
    """Of a tower or chain: share of the samples outside it, at level 0, ... at level `depth`."""
    counts = [0] * (depth + 2)
    for stack in stacks:
        level = sum(frame.name.startswith("node_") for frame in stack.frames)
        counts[min(level, depth + 1)] += stack.samples
    total = sum(counts) or 1
    return [count / total for count in counts]


def unevenness(shares: Sequence[float], truth: Sequence[float]) -> float:
    """Half the summed difference of two distributions, in percentage points."""
    return 50 * sum(abs(share - true) for share, true in zip(shares, truth, strict=True))
