# SPDX-License-Identifier: Apache-2.0
"""What a profiler of this process brings home."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from pystrobe import _core
from pystrobe._check import check_word, is_count
from pystrobe._errors import InvalidArgumentError
from pystrobe._gpu_report import GpuReport, StackFrame
from pystrobe._output import OF_CALLS, OF_SAMPLES, OF_TIMELINES, check_place
from pystrobe._range_report import NamedRange
from pystrobe._report import (
    FunctionTimes,
    Metadata,
    Mode,
    Quality,
    Report,
    Weights,
    to_report,
)

Unit = Literal["samples", "us", "ns"]
FORMATS = (*OF_SAMPLES, *OF_CALLS, *OF_TIMELINES)


@dataclass(frozen=True)
class Stack:
    tid: int
    thread: str  #: in mode "gpu" a stream of a GPU, whose kernels are frames too
    frames: tuple[StackFrame, ...]  #: root first; none: outside any Python function, or not known
    self: Weights


class Profile:
    """A recording of this process: to print, to save, to ask.

    ``mode`` says which time counts: ``"wall"`` (elapsed, waiting included), ``"cpu"`` (as the
    kernel charged it), ``"gil"`` (elapsed while holding the interpreter's lock) or ``"gpu"`` (of a
    GPU, by what launched its work). It is that of the profiler unless a method is given another;
    what was sampled by CPU time has no other of threads.
    """

    def __init__(self, recording: _core.Recording) -> None:
        self._recording = recording
        self._whole = self.report()

    @property
    def quality(self) -> Quality:
        """How far it can be trusted."""
        return self._whole.quality

    @property
    def metadata(self) -> Metadata:
        return self._whole.metadata

    @property
    def gpu(self) -> GpuReport | None:
        """What GPUs did; ``None`` where nobody asked."""
        return self._whole.gpu

    @property
    def ranges(self) -> tuple[NamedRange, ...]:
        """The ranges that the program named, each before those within it; none where nobody asked.

        On the GPU they have the time that their work took, on the host that between their ends.
        """
        return self._whole.ranges

    def report(
        self,
        *,
        mode: Mode | None = None,
        thread: str | None = None,
        since: float = 0.0,
        until: float | None = None,
        include_idle: bool = False,
    ) -> Report:
        """Adds up what was sampled, as :func:`pystrobe.read` does of a file."""
        return to_report(self._recording.report(mode, thread, since, until, include_idle))

    def top(self, count: int = 20, *, mode: Mode | None = None) -> tuple[FunctionTimes, ...]:
        """The functions with the most time of their own."""
        return self.report(mode=mode).functions[:count]

    def stacks(self, *, mode: Mode | None = None, include_idle: bool = False) -> tuple[Stack, ...]:
        """Each distinct stack of each thread, with what was spent in its last frame; without any
        frame what was spent outside Python, or not looked at.

        In mode ``"gpu"`` each stack that launched something, with that on it.
        """
        return tuple(
            Stack(
                tid=entry["tid"],
                thread=entry["thread"],
                frames=tuple(StackFrame(**frame) for frame in entry["frames"]),
                self=Weights(**entry["self"]),
            )
            for entry in self._recording.stacks(mode, include_idle)
        )

    def print(
        self,
        *,
        mode: Mode | None = None,
        top: int | None = None,
        thread: str | None = None,
        include_idle: bool = False,
        file: TextIO | None = None,
    ) -> None:
        """Prints the table of functions and the quality line; in mode ``"gpu"`` kernels too, and
        the ranges that the program named.

        :param top: rows; ``None``: at most 20, and none that hardly matters.
        :param thread: only threads whose name contains this, or whose tid it is.
        :param file: a text stream; ``None``: ``sys.stdout``, coloured where it is a terminal.
        """
        if top is not None and not is_count(top, least=1):
            raise InvalidArgumentError(f"top is {top!r}", "a number of rows, 1 or more, or None")
        stream = sys.stdout if file is None else file
        descriptor = stream.fileno() if stream.isatty() else None
        stream.write(self._table(mode, top, descriptor, include_idle, thread))

    def __str__(self) -> str:
        return self._table(None, None, None, False)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        mode: Mode | None = None,
        include_idle: bool = False,
        unit: Unit = "samples",
    ) -> None:
        """Writes a file, replacing one that is there once all is written.

        :param format: ``strobe``, ``html``, ``speedscope``, ``pprof``, ``collapsed``, ``json``; of
            traced calls also ``callgrind`` and ``pstats``, and of a timeline ``trace-events`` and
            ``perfetto``. ``None``: by the file's name.
        :param unit: of the numbers in collapsed stacks: ``samples``, of a GPU works; ``us`` or
            ``ns``, exact time.
        :raises InvalidArgumentError: a format, a unit or a name that is none of these, or there is
            no such folder.
        """
        chosen = format or _core.format_of(os.fsencode(path))
        if chosen is None:
            raise InvalidArgumentError(
                f"no format is known by the name {os.fspath(path)!r}",
                f"it ends as one of {', '.join(FORMATS)} does; or give format='html'",
            )
        if chosen not in FORMATS:
            raise InvalidArgumentError(
                f"no such format: {format!r}", f"format= is one of {', '.join(FORMATS)}"
            )
        check_word("mode", mode)
        check_word("unit", unit)
        check_place(path)
        with _replacing(Path(path)) as descriptor:
            self._recording.save(descriptor, os.fsencode(path), chosen, mode, include_idle, unit)

    def _table(
        self,
        mode: Mode | None,
        top: int | None,
        descriptor: int | None,
        include_idle: bool,
        thread: str | None = None,
    ) -> str:
        check_word("mode", mode)
        try:
            directory = os.fsencode(os.getcwd())
        except OSError:  # it is gone
            directory = b""
        return self._recording.table(mode, top, descriptor, directory, include_idle, thread)


@contextmanager
def _replacing(path: Path) -> Iterator[int]:
    """A descriptor for what is to be at ``path``; a device or a pipe is written itself."""
    if path.exists() and not path.is_file():
        descriptor = os.open(path, os.O_WRONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        return
    made = path.with_name(f"{path.name}.{os.getpid()}.part")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield descriptor
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise
    finally:
        os.close(descriptor)
