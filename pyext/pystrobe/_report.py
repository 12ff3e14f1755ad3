# SPDX-License-Identifier: Apache-2.0
"""A recording as data: where the time went."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pystrobe import _core
from pystrobe._gpu_report import GpuReport, to_gpu_report
from pystrobe._range_report import NamedRange, to_ranges

Mode = Literal["wall", "cpu", "gil", "gpu"]


@dataclass(frozen=True)
class Weights:
    """How much of the recording something got, by each measure."""

    samples: int
    cpu_samples: int  #: of those, where the thread used CPU time
    gil_samples: int  #: of those, while holding the interpreter's lock
    wall_ns: int
    cpu_ns: int  #: as the kernel charged it
    gil_ns: int
    gpu_ns: int  #: of a GPU, by what launched its work; in mode "gpu" alone, as gpu_count
    gpu_count: int  #: kernels, copies and sets

    def nanoseconds(self, mode: Mode) -> int:
        """The time by the measure named."""
        times = {"wall": self.wall_ns, "cpu": self.cpu_ns, "gil": self.gil_ns, "gpu": self.gpu_ns}
        return times[mode]


@dataclass(frozen=True)
class CpuSplit:
    """CPU time by what used it."""

    python_ns: int  #: in the interpreter, its built-in functions included
    native_ns: int  #: in C functions that are not the interpreter's
    kernel_ns: int  #: in the kernel, whoever called it

    @property
    def total_ns(self) -> int:
        """All of it."""
        return self.python_ns + self.native_ns + self.kernel_ns


@dataclass(frozen=True)
class FunctionTimes:
    name: str
    file: str
    first_line: int
    hottest_line: int  #: the line with the most time
    native: bool  #: a function of machine code; its ``file`` is its source file or its ELF file
    self: Weights  #: the function's own time
    total: Weights  #: with what it called; recursion counted once
    #: of a Python function, by line: what used the CPU time of the line and of the C functions that
    #: it called. Empty where the recording has no C functions.
    lines: Mapping[int, CpuSplit]


@dataclass(frozen=True)
class ThreadTimes:
    """A thread; in mode "gpu" a stream of a GPU."""

    tid: int  #: 0 of a stream
    name: str
    interpreter: int
    total: Weights


@dataclass(frozen=True)
class Metadata:
    """What was known when sampling started."""

    pid: int
    command: tuple[str, ...]
    executable: str
    python_version: str
    host: str
    pystrobe_version: str
    pause_mode: str  #: how running threads were held still, at first
    start_unix_ns: int
    wanted_rate_hz: float
    max_overhead: float  #: 0: no limit
    cpu_count: int
    native: bool  #: stacks have C functions
    max_depth: int  #: of traced calls, how many within each other are told; 0: all
    clock: str  #: of traced calls: "both", "cpu"; or "wall": CPU times are not known, and 0
    gpu_failure: str  #: why what a GPU did is not there, where that was asked for


@dataclass(frozen=True)
class Quality:
    """How far the recording can be trusted."""

    deadlines: int  #: times at which a sample was due
    stacks: int  #: of threads, recorded
    taken: int  #: deadlines at which one was taken
    proved: int  #: of those, neither marked nor incomplete
    marked: int  #: of those, kept without proof
    incomplete: int  #: of those, not reaching the thread's first frame, or with a frame unnamed
    late: int  #: more than one period, or a millisecond, after the deadline
    lost: int  #: deadlines without a sample
    retries: int
    unresolved: int  #: frames whose function could not be read
    reused_code: int
    duration_ns: int
    held_ns: int  #: time the target waited because of the sampler
    run_delay_ns: int  #: the kernel's count of it, other causes included
    own_cpu_ns: int
    achieved_rate_hz: float
    final_rate_hz: float
    complete: bool  #: False: the sampler was cut off
    #: "schedstat" (exact) or "stat" (10 ms ticks); by signals what sent them, and behind semicolons
    #: how many threads had none, and why
    cpu_source: str
    pause_mode: str  #: how running threads were held still at the end; empty in older files
    thread_ns: int  #: wall time of all threads together
    unseen_ns: int  #: of it, without a look at the thread: its stack is not known
    #: of duration_ns, at less than the wanted rate because of max_overhead; None in older files
    limited_ns: int | None
    cpu_ns: int  #: CPU time of all threads together; 0 in older files
    unseen_cpu_ns: int  #: of it, without a look at the thread
    native_cut: int  #: stacks with native frames that do not reach the thread's first function
    native_unfit: int  #: stacks whose native frames and Python frames did not fit together
    left_out: int  #: of traced calls, those deeper than max_depth
    #: times that a thread was held for a sample; 0 of traced calls and in older files
    held_count: int
    #: for how long, without the context switches that are in held_ns; by signals what the handler
    #: took. To 6.25 %. None where held_count is 0
    held_median_ns: int | None
    held_p99_ns: int | None  #: 99 % of them took no longer
    #: of traced calls, what hooks were told of besides, each time with its end: a generator's steps
    #: after the first, functions that are left out, functions of C; in held_ns as calls are
    uncounted: int
    #: why a timeline ends before the calls do, all of which are counted; empty: it does not
    timeline_failure: str
    timeline_end_ns: int  #: until when it tells of them then, since the start


@dataclass(frozen=True)
class Report:
    metadata: Metadata
    quality: Quality
    mode: Mode
    total: Weights
    unseen: Weights  #: of `total`, without a look at the thread: in no function
    threads: tuple[ThreadTimes, ...]  #: by descending CPU time
    functions: tuple[FunctionTimes, ...]  #: by descending own time in `mode`
    idle_threads_hidden: int
    cut_off: str  #: empty, or what is missing of a file that was cut off
    #: of the CPU time in any function; None where the recording has no C functions
    cpu_split: CpuSplit | None
    gpu: GpuReport | None  #: what GPUs did, whatever the mode; None where nobody asked
    #: that the program named, of all of the recording: each before those within it, by descending
    #: time; empty where nobody asked
    ranges: tuple[NamedRange, ...]


def read(
    path: str | os.PathLike[str],
    *,
    mode: Mode | None = None,
    thread: str | None = None,
    since: float = 0.0,
    until: float | None = None,
    include_idle: bool = False,
) -> Report:
    """Reads a ``.strobe`` file and adds up its samples.

    :param mode: the time that counts; ``None``: wall time, or CPU or GPU time where there is no
        other. In mode ``"gpu"`` functions have the time of the kernels that they launched.
    :param thread: keep only threads whose name contains this, or whose id it is; in mode ``"gpu"``
        only streams whose name contains it.
    :param since: leave out what came before, in seconds from the start; ``until`` likewise.
    :param include_idle: keep threads that hardly ran.
    :raises Error: a subclass says what is wrong with the file or the arguments.
    """
    return to_report(_core.read(os.fsencode(path), mode, thread, since, until, include_idle))


def to_report(raw: dict[str, Any]) -> Report:
    metadata = raw["metadata"]
    return Report(
        metadata=Metadata(**{**metadata, "command": tuple(metadata["command"])}),
        quality=Quality(**raw["quality"]),
        mode=raw["mode"],
        total=Weights(**raw["total"]),
        unseen=Weights(**raw["unseen"]),
        threads=tuple(
            ThreadTimes(**{**thread, "total": Weights(**thread["total"])})
            for thread in raw["threads"]
        ),
        functions=tuple(_to_function(row) for row in raw["functions"]),
        idle_threads_hidden=raw["idle_threads_hidden"],
        cut_off=raw["cut_off"],
        cpu_split=CpuSplit(**raw["cpu_split"]) if raw["cpu_split"] else None,
        gpu=to_gpu_report(raw["gpu"]) if raw["gpu"] else None,
        ranges=to_ranges(raw["ranges"]),
    )


def _to_function(raw: dict[str, Any]) -> FunctionTimes:
    lines = {line: CpuSplit(**split) for line, split in raw["lines"].items()}
    return FunctionTimes(
        **{
            **raw,
            "self": Weights(**raw["self"]),
            "total": Weights(**raw["total"]),
            "lines": MappingProxyType(lines),
        }
    )
