# SPDX-License-Identifier: Apache-2.0
"""Where the time went, in the columns of ``torch.profiler``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

from pystrobe._errors import InvalidArgumentError
from pystrobe._gpu_report import GpuReport
from pystrobe._profile import Profile
from pystrobe._report import FunctionTimes

_US = 1e-3
_WIDEST_NAME = 55


@dataclass
class FunctionAverage:
    """A Python function, or a kernel, copy or set of a GPU. Times in microseconds, of all its calls
    together. A function's CUDA time is of what it launched itself, its total also of what the
    functions that it called did; a kernel's stands again in the function that launched it."""

    key: str
    on_device: bool  #: work of a GPU
    count: int | None = (
        None  #: times that a device did it; ``None``: calls are sampled, not counted
    )
    self_cpu_time_total: float = 0.0
    cpu_time_total: float = 0.0
    self_cuda_time_total: float = 0.0
    cuda_time_total: float = 0.0

    @property
    def self_device_time_total(self) -> float:
        return self.self_cuda_time_total

    @property
    def device_time_total(self) -> float:
        return self.cuda_time_total

    @property
    def cuda_time(self) -> float:
        """Of one call; 0 where calls are not counted."""
        return self.cuda_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.cuda_time


_SORTS: dict[str, Callable[[FunctionAverage], float]] = {
    "count": lambda row: row.count or 0,
    "self_cpu_time_total": lambda row: row.self_cpu_time_total,
    "cpu_time_total": lambda row: row.cpu_time_total,
    "self_cuda_time_total": lambda row: row.self_cuda_time_total,
    "self_device_time_total": lambda row: row.self_cuda_time_total,
    "cuda_time_total": lambda row: row.cuda_time_total,
    "device_time_total": lambda row: row.cuda_time_total,
    "cuda_time": lambda row: row.cuda_time,
    "device_time": lambda row: row.cuda_time,
}


def sort_key(name: str) -> Callable[[FunctionAverage], float]:
    if name not in _SORTS:
        raise InvalidArgumentError(f"no such order: {name!r}", f"one of {', '.join(_SORTS)}")
    return _SORTS[name]


@dataclass
class Averages(Sequence[FunctionAverage]):
    """What :meth:`Profiler.key_averages` gives: one row for each function and each kernel."""

    rows: list[FunctionAverage]
    cpu_total: float  #: us, of all threads
    cuda_total: float  #: us, of all streams
    has_cuda: bool = field(default=True)

    @overload
    def __getitem__(self, index: int) -> FunctionAverage: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionAverage]: ...
    def __getitem__(self, index: int | slice) -> FunctionAverage | list[FunctionAverage]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[FunctionAverage]:
        return iter(self.rows)

    def __str__(self) -> str:
        return self.table()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = _WIDEST_NAME,
    ) -> str:
        """The rows as text, the greatest first.

        :param sort_by: a field of :class:`FunctionAverage`; ``None``: CUDA time where there is any,
            else CPU time, of the function itself.
        :raises InvalidArgumentError: an order that is none.
        """
        if sort_by is None:
            sort_by = "self_cuda_time_total" if self.has_cuda else "self_cpu_time_total"
        rows = sorted(self.rows, key=sort_key(sort_by), reverse=True)
        return "\n".join(self._lines(rows[:row_limit], max_name_column_width))

    def _lines(self, rows: list[FunctionAverage], widest: int) -> Iterator[str]:
        columns = [_name_column(rows, widest), *self._cpu_columns(rows)]
        if self.has_cuda:
            columns += self._cuda_columns(rows)
            columns.append(["# of Calls", *("" if r.count is None else str(r.count) for r in rows)])
        widths = [max(map(len, column)) for column in columns]
        rule = "  ".join("-" * width for width in widths)
        yield rule
        for number, cells in enumerate(zip(*columns)):
            first, *rest = (
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(cells, widths))
            )
            yield "  ".join([first, *rest])
            if number == 0:
                yield rule
        yield rule
        yield f"Self CPU time total: {_text(self.cpu_total)}"
        if self.has_cuda:
            yield f"Self CUDA time total: {_text(self.cuda_total)}"

    def _cpu_columns(self, rows: list[FunctionAverage]) -> list[list[str]]:
        own = [row.self_cpu_time_total for row in rows]
        whole = [row.cpu_time_total for row in rows]
        return [
            ["Self CPU %", *(_share(value, self.cpu_total) for value in own)],
            ["Self CPU", *map(_text, own)],
            ["CPU total %", *(_share(value, self.cpu_total) for value in whole)],
            ["CPU total", *map(_text, whole)],
        ]

    def _cuda_columns(self, rows: list[FunctionAverage]) -> list[list[str]]:
        own = [row.self_cuda_time_total for row in rows]
        return [
            ["Self CUDA", *map(_text, own)],
            ["Self CUDA %", *(_share(value, self.cuda_total) for value in own)],
            ["CUDA total", *(_text(row.cuda_time_total) for row in rows)],
            ["CUDA time avg", *("" if not row.count else _text(row.cuda_time) for row in rows)],
        ]


def _name_column(rows: list[FunctionAverage], widest: int) -> list[str]:
    cut = (row.key if len(row.key) <= widest else row.key[: widest - 3] + "..." for row in rows)
    return ["Name", *cut]


def _share(value: float, total: float) -> str:
    return f"{100 * value / total:.2f}%" if total > 0 else "0.00%"


def _text(microseconds: float) -> str:
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= scale:
            return f"{microseconds / scale:.3f}{unit}"
    return f"{microseconds:.3f}us"


def _key_of(function: FunctionTimes) -> str:
    if function.native or not function.first_line:
        return function.name
    return f"{function.name} ({os.path.basename(function.file)}:{function.first_line})"


def key_averages(profile: Profile) -> Averages:
    """Of all threads and streams of ``profile``."""
    rows: dict[tuple[str, str, int], FunctionAverage] = {}
    cpu_total = cuda_total = 0.0

    def row_of(function: FunctionTimes) -> FunctionAverage:
        place = (function.name, function.file, function.first_line)
        if place not in rows:
            rows[place] = FunctionAverage(_key_of(function), on_device=function.file == "<gpu>")
        return rows[place]

    if profile.metadata.pause_mode != "gpu":
        report = profile.report(mode="cpu", include_idle=True)
        cpu_total = report.total.cpu_ns * _US
        for function in report.functions:
            row = row_of(function)
            row.self_cpu_time_total = function.self.cpu_ns * _US
            row.cpu_time_total = function.total.cpu_ns * _US
    if profile.gpu is not None:
        report = profile.report(mode="gpu")
        cuda_total = report.total.gpu_ns * _US
        for function in report.functions:
            row = row_of(function)
            row.cuda_time_total = function.total.gpu_ns * _US
            if row.on_device:
                row.count = function.self.gpu_count
                row.self_cuda_time_total = row.cuda_time_total
        _add_launched(profile.gpu, rows)
    return Averages(list(rows.values()), cpu_total, cuda_total, has_cuda=profile.gpu is not None)


def _add_launched(gpu: GpuReport, rows: dict[tuple[str, str, int], FunctionAverage]) -> None:
    """What each function has put on a device itself."""
    first_lines: dict[tuple[str, str], list[int]] = {}
    for name, file, first_line in rows:
        first_lines.setdefault((name, file), []).append(first_line)
    for work in gpu.sums:
        if not work.frames:
            continue
        last = work.frames[-1]
        # Of functions of one name in one file, the one that the line is in.
        lines = first_lines.get((last.function, last.file), [])
        begin = max((line for line in lines if line <= last.line), default=None)
        if begin is not None:
            row = rows[last.function, last.file, begin]
            row.self_cuda_time_total += work.total_ns * _US
