# SPDX-License-Identifier: Apache-2.0
"""Stacks of a JSON report with what kind of function each frame is."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cases import CALL_HEAVY, Case
from collapsed import Stack, make_frame
from running import TARGETS

# A thread that one interpreter has left for another has runs of the evaluation loop of which no
# frames are known; one that ends may have, for a moment.
MOST_UNFIT = {"subinterpreters": 1.0, "threadchurn": 0.02}
# Of each thread: before it is known how its stacks are as a rule.
FIRST_UNFIT = 8
# Deeper than native frames are followed, up to 3.10 where each Python call has several of C.
TOO_DEEP = Case("deep", ("3000", "moving"))


def cases_but_often(*often: str) -> list[Any]:
    """All; without --matrix those of these names."""
    return [
        pytest.param(case, id=case.name, marks=[] if case.name in often else pytest.mark.matrix)
        for case in [*CALL_HEAVY, Case("native")]
    ]


class NativeFrame(NamedTuple):
    name: str
    file: str  # source file, or ELF file
    native: bool


class NativeStack(NamedTuple):
    frames: tuple[NativeFrame, ...]  # root first
    python: Stack  # without the native ones
    samples: int
    thread: str

    def below(self, name: str) -> tuple[NativeFrame, ...]:
        """What the innermost Python function of this name has called."""
        names = [None if frame.native else frame.name for frame in self.frames]
        return self.frames[len(names) - names[::-1].index(name) :] if name in names else ()


def native_stacks(report: dict[str, Any], weight: str = "samples") -> Iterable[NativeStack]:
    functions = report["functions"]
    for thread in report["threads"]:
        for stack in thread["stacks"]:
            placed = [(functions[place], line) for place, line in stack["frames"]]
            python = tuple(
                make_frame(function["name"], function["file"], line)
                for function, line in placed
                if not function["native"]
            )
            seen = stack[weight]
            if not placed and len(report["threads"]) == 1:
                seen -= report["unseen"][weight]
            yield NativeStack(
                tuple(NativeFrame(f["name"], f["file"], f["native"]) for f, _ in placed),
                Stack(python, seen, thread["name"]),
                seen,
                thread["name"],
            )


def count_inside(stacks: list[NativeStack]) -> Counter[str]:
    """Samples of the native target's functions, and those of them that are in C."""
    samples: Counter[str] = Counter()
    for stack in stacks:
        for caller in ("shrink", "digest"):
            below = stack.below(caller)
            samples[caller] += stack.samples * (caller in [f.name for f in stack.frames])
            samples[f"{caller} in C"] += stack.samples * bool(below)
            samples[f"{caller} by name"] += stack.samples * any(
                "deflate" in frame.name or "compress" in frame.name for frame in below
            )
            assert all(frame.native for frame in below), "it calls no Python"
        if "python_leaf" in [frame.name for frame in stack.frames]:
            samples["python"] += stack.samples
            samples["python in C"] += stack.samples * stack.frames[-1].native
    return samples


def count_calls(stacks: list[NativeStack]) -> Counter[tuple[str, str]]:
    """Samples of the c_libraries target by the Python function and the C function it called."""
    called: Counter[tuple[str, str]] = Counter()
    for stack in stacks:
        for caller in ("first", "second"):
            for frame in stack.below(caller):
                if frame.name.startswith("burn_"):
                    called[caller, frame.name] += stack.samples
    return called


def two_libraries(directory: Path) -> list[str]:
    """For the c_libraries target: as a rule they come to lie at the same addresses."""
    libraries = []
    for name in ("first", "second"):
        libraries.append(str(directory / f"{name}.so"))
        source = str(TARGETS / "c_library.c")
        compiler = ["cc", "-shared", "-fPIC", "-O1", f"-Dburn=burn_{name}"]
        subprocess.run([*compiler, "-o", libraries[-1], source], check=True)
    return libraries


def library_of_two_units(directory: Path) -> str:
    """For the c_units target: each of its functions has debug information of its own, of pages."""
    source = str(TARGETS / "c_library.c")
    objects = [str(directory / f"{name}.o") for name in ("first", "second")]
    compiler = ["cc", "-g", "-fPIC", "-O1", "-fno-eliminate-unused-debug-types"]
    compiler += ["-include", "stdlib.h", "-include", "signal.h", "-include", "sys/socket.h"]
    for name, unit in zip(("first", "second"), objects):
        subprocess.run([*compiler, f"-Dburn=burn_{name}", "-c", "-o", unit, source], check=True)
    library = str(directory / "units.so")
    subprocess.run([*compiler, "-shared", "-o", library, *objects], check=True)
    return library


def percent(split: dict[str, int]) -> dict[str, float]:
    parts = {name: split[f"{name}_ns"] for name in ("python", "native", "kernel")}
    return {name: 100 * part / sum(parts.values()) for name, part in parts.items()}


def splits(report: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What used the CPU in functions of the split target, in percent of each."""
    return {
        function["name"].split(".")[-1]: percent(function["cpu_split"])
        for function in report["functions"]
        if function["file"].endswith("split.py") and "cpu_split" in function
    }
