# SPDX-License-Identifier: Apache-2.0
"""What GPUs did, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

WorkKind = Literal["kernel", "copy", "set"]
IdleCause = Literal["queue", "launch", "launches", "wait", "host", "unknown"]


@dataclass(frozen=True)
class StackFrame:
    function: str
    file: str
    line: int
    native: bool  #: of a function of machine code


@dataclass(frozen=True)
class GpuDevice:
    number: int  #: CUDA's, of those that the process saw
    name: str
    multiprocessors: int  #: 0: not known


@dataclass(frozen=True)
class GpuOccupancy:
    """How much of a device a kernel can fill, by its shape and its last grid."""

    blocks_per_multiprocessor: int
    theoretical: float  #: warps that fit, of those that all multiprocessors hold
    waves: float  #: times that the device is filled
    tail_efficiency: float  #: share of the places with work, if all blocks take equally long


@dataclass(frozen=True)
class GpuKernelTimes:
    """All work by one name, wherever it was launched; copies and sets are rows too.

    Kernels of several shapes are one row, unless more or fewer of their blocks fit on the device.
    """

    kind: WorkKind
    name: str  #: demangled, in full
    short_name: str  #: without arguments
    label: str  #: the same, with those arguments of templates that tell kernels so called apart
    count: int
    untimed: int  #: done too, but the device told no times; with gpu="launches" what was launched
    total_ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    #: Times are kept by powers of two: between these the median is; None where there are none.
    median_at_least_ns: int | None
    median_at_most_ns: int | None
    bytes: int  #: of copies and sets
    gigabytes_per_second: float  #: of copies and sets; 0: not known
    block: tuple[int, int, int]  #: threads, of what of it took most time, as what follows
    last_grid: tuple[int, int, int]
    occupancy: GpuOccupancy | None
    advice: str  #: on what may be worth a change; may be empty
    #: what took most time, or with gpu="launches" most of it, over all of it; None: in no Python
    launched_by: StackFrame | None


@dataclass(frozen=True)
class GpuSum:
    """All work of one kernel that came from one place."""

    frames: tuple[StackFrame, ...]  #: where it was launched, root first; none: not in Python
    device: int
    stream: int | None  #: None: not known
    kind: WorkKind
    name: str
    short_name: str
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]  #: blocks; all 0 where there are none
    registers: int  #: of a thread
    static_shared: int  #: bytes of a block
    dynamic_shared: int
    count: int
    untimed: int
    total_ns: int
    min_ns: int
    max_ns: int
    bytes: int
    last_grid: tuple[int, int, int]
    #: How many took 0 ns, 1 ns, 2 to 3, 4 to 7 and so on; the last is of all that is longer.
    buckets: tuple[int, ...]
    occupancy: GpuOccupancy | None
    advice: str


@dataclass(frozen=True)
class GpuUse:
    """Of one device, between the begin of its first work and the end of its last one."""

    device: int
    busy_ns: int  #: at least one of its streams had work
    idle_ns: int


@dataclass(frozen=True)
class GpuIdle:
    """All times that a device had nothing to do for one reason, between the same two places.

    The cause is of what came next: ``"queue"``: it was launched in time, and waited for another
    stream or the device itself; ``"launch"``: it was being launched; ``"launches"``: launches
    followed each other, 100 us apart at most, but came too late; ``"wait"``: the thread had waited
    for the device first; ``"host"``: nothing was launched for longer; ``"unknown"``: its launch was
    not seen.
    """

    device: int
    cause: IdleCause
    #: Root first, of the launch before ("launches", "host") or of the wait ("wait").
    from_frames: tuple[StackFrame, ...]
    to_frames: tuple[StackFrame, ...]  #: of the launch that ended it
    count: int
    total_ns: int
    max_ns: int


@dataclass(frozen=True)
class GpuWait:
    """What threads waited for a device, in one place."""

    frames: tuple[StackFrame, ...]  #: root first
    count: int
    total_ns: int
    max_ns: int


@dataclass(frozen=True)
class GpuMeanwhileLine:
    """All that threads were seen at on one line."""

    frame: StackFrame | None  #: the innermost one in Python; None: in no Python
    wall_ns: int  #: 0 where threads were sampled by CPU time
    cpu_ns: int


@dataclass(frozen=True)
class GpuMeanwhile:
    """What samples tell of the threads that launched nothing for a device, in the idle times of
    cause ``"host"`` that are known one by one: the 65,536 longest."""

    gaps_ns: int  #: these are so long, of each thread
    wall_ns: int  #: of this, that samples cover
    cpu_ns: int  #: that the threads used meanwhile
    lines: tuple[GpuMeanwhileLine, ...]  #: by descending time


@dataclass(frozen=True)
class GpuQuality:
    """How far the figures of a GPU can be trusted."""

    line: str  #: the sentence that every report shows
    launches_only: bool  #: nobody asked what the device did: sums have no times, and no records
    kernel_launches: int  #: calls of the driver, as the next three
    graph_launches: int
    copies: int
    sets: int
    failed: int  #: of these
    captured: int  #: of these, into a graph instead of to a device
    records: int  #: what the device was seen to do
    of_graphs: int  #: of these, of graphs, whose launches have many
    unmatched: int  #: of these, whose launch was not seen
    dropped: int  #: records that are lost
    overflowed: int  #: of `records`, in a sum that has all there was no room for
    duration_ns: int
    own_cpu_ns: int
    source: str  #: what told


@dataclass(frozen=True)
class GpuReport:
    """All of the recording, whatever part of it the report is of."""

    devices: tuple[GpuDevice, ...]
    total_ns: int
    kernels: tuple[GpuKernelTimes, ...]  #: by descending time
    sums: tuple[GpuSum, ...]
    uses: tuple[GpuUse, ...]
    idles: tuple[GpuIdle, ...]
    waits: tuple[GpuWait, ...]
    meanwhile: GpuMeanwhile
    quality: GpuQuality


def to_gpu_report(raw: dict[str, Any]) -> GpuReport:
    frames = tuple(StackFrame(**frame) for frame in raw["frames"])
    return GpuReport(
        devices=tuple(GpuDevice(**device) for device in raw["devices"]),
        total_ns=raw["total_ns"],
        kernels=tuple(_to_kernel(row, frames) for row in raw["kernels"]),
        sums=tuple(_to_sum(row, raw["shapes"][row["kernel"]], frames) for row in raw["sums"]),
        uses=tuple(GpuUse(**use) for use in raw["uses"]),
        idles=tuple(GpuIdle(**_with_frames(idle, frames)) for idle in raw["idles"]),
        waits=tuple(GpuWait(**_with_frames(wait, frames)) for wait in raw["waits"]),
        meanwhile=_to_meanwhile(raw["meanwhile"], frames),
        quality=GpuQuality(**raw["quality"]),
    )


def _to_meanwhile(raw: dict[str, Any], frames: tuple[StackFrame, ...]) -> GpuMeanwhile:
    lines = [
        GpuMeanwhileLine(
            **{**line, "frame": None if line["frame"] is None else frames[line["frame"]]}
        )
        for line in raw["lines"]
    ]
    return GpuMeanwhile(**{**raw, "lines": tuple(lines)})


def _to_kernel(raw: dict[str, Any], frames: tuple[StackFrame, ...]) -> GpuKernelTimes:
    place = raw["launched_by"]
    return GpuKernelTimes(
        **{
            **raw,
            "occupancy": _to_occupancy(raw["occupancy"]),
            "launched_by": None if place is None else frames[place],
        }
    )


def _to_sum(raw: dict[str, Any], shape: dict[str, Any], frames: tuple[StackFrame, ...]) -> GpuSum:
    rest = {key: value for key, value in raw.items() if key != "kernel"}
    return GpuSum(
        **{
            **shape,
            **_with_frames(rest, frames),
            "occupancy": _to_occupancy(raw["occupancy"]),
        }
    )


def _with_frames(raw: dict[str, Any], frames: tuple[StackFrame, ...]) -> dict[str, Any]:
    """The places of frames in it are frames then."""
    found: dict[str, Any] = {
        key: tuple(frames[place] for place in raw[key])
        for key in ("frames", "from_frames", "to_frames")
        if key in raw
    }
    return {**raw, **found}


def _to_occupancy(raw: dict[str, Any] | None) -> GpuOccupancy | None:
    return None if raw is None else GpuOccupancy(**raw)
