# SPDX-License-Identifier: Apache-2.0
"""Stacks of a JSON report with what kind of function each frame is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from collapsed import Stack, make_frame


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


def native_stacks(report: dict[str, Any]) -> Iterable[NativeStack]:
    functions = report["functions"]
    for thread in report["threads"]:
        for stack in thread["stacks"]:
            placed = [(functions[place], line) for place, line in stack["frames"]]
            python = tuple(
                make_frame(function["name"], function["file"], line)
                for function, line in placed
                if not function["native"]
            )
            yield NativeStack(
                tuple(NativeFrame(f["name"], f["file"], f["native"]) for f, _ in placed),
                Stack(python, stack["samples"], thread["name"]),
                stack["samples"],
                thread["name"],
            )
