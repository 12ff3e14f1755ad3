# SPDX-License-Identifier: Apache-2.0
"""Collapsed stacks as pystrobe writes them: `function (file.py:line)`, root first, count last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

FRAME = re.compile(r"(?P<name>.*) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)")


class Frame(NamedTuple):
    name: str  # without the qualifying part
    file: str  # last part of the path
    line: int  # 0 = none


class Stack(NamedTuple):
    frames: tuple[Frame, ...]  # root first
    samples: int


def make_frame(name: str, file: str, line: int) -> Frame:
    return Frame(name.rsplit(".", 1)[-1], file.rsplit("/", 1)[-1], line)


def parse_frame(text: str) -> Frame:
    match = FRAME.fullmatch(text)
    if not match:
        return Frame(text, "", 0)
    return make_frame(match["name"], match["file"], int(match["line"] or 0))


def parse_lines(lines: Iterable[str]) -> Iterator[Stack]:
    for line in lines:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if stack:
            yield Stack(tuple(parse_frame(frame) for frame in stack.split(";")), int(count))


def parse(text: str) -> list[Stack]:
    return list(parse_lines(text.splitlines()))
