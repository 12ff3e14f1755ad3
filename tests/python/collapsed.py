# SPDX-License-Identifier: Apache-2.0
"""Collapsed stacks as pystrobe writes them: `function (file.py:line)`, root first, value last.

Where several threads were sampled, a stack begins with its thread: `name [tid]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

THREAD = re.compile(r".* \[\d+(, interpreter \d+)?\]")
NO_FRAMES = "[no Python frames]"
NOT_LOOKED_AT = "[not looked at]"
FRAME = re.compile(r"(?P<name>.*) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)")


class Frame(NamedTuple):
    name: str  # without the qualifying part
    file: str  # last part of the path
    line: int  # 0 = none


class Stack(NamedTuple):
    frames: tuple[Frame, ...]  # root first
    samples: int
    thread: str = ""
    looked_at: bool = True  # else there are no frames, and the recording says why


def make_frame(name: str, file: str, line: int) -> Frame:
    return Frame(name.rsplit(".", 1)[-1], file.rsplit("/", 1)[-1], line)


def parse_frame(text: str) -> Frame:
    match = FRAME.fullmatch(text)
    if not match:
        return Frame(text, "", 0)
    return make_frame(match["name"], match["file"], int(match["line"] or 0))


def parse_lines(lines: Iterable[str]) -> Iterator[Stack]:
    for line in lines:
        stack, _, value = line.rstrip("\n").rpartition(" ")
        if not stack:
            continue
        frames = stack.split(";")
        thread = frames.pop(0) if THREAD.fullmatch(frames[0]) else ""
        looked_at = frames != [NOT_LOOKED_AT]
        if frames == [NO_FRAMES] or not looked_at:
            frames = []
        yield Stack(tuple(parse_frame(frame) for frame in frames), int(value), thread, looked_at)


def parse(text: str) -> list[Stack]:
    return list(parse_lines(text.splitlines()))
