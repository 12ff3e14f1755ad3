# SPDX-License-Identifier: Apache-2.0
"""The ranges that the program named (NVTX), as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RangeOnStream:
    """What was launched in a range, those within it included, on one stream of a GPU."""

    device: int
    stream: int
    instances: int  #: times that the range began and put something on the stream
    span_ns: int  #: of each, from where its first work begins to where its last one ends
    busy_ns: int  #: of all work in it; less than the span where the stream waits
    works: int  #: kernels, copies and sets


@dataclass(frozen=True)
class NamedRange:
    """All times that a range of this name was open within one other, of all threads."""

    name: str
    domain: str  #: of NVTX; empty: the default one
    count: int  #: times that it began
    host_ns: int  #: from begin to end, of all
    streams: tuple[RangeOnStream, ...]
    parent: NamedRange | None = field(repr=False, compare=False)  #: that it is in

    @property
    def host_seconds(self) -> float:
        return self.host_ns / 1e9

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the ranges that it is in, the outermost first, and its own."""
        names = []
        at: NamedRange | None = self
        while at is not None:
            names.append(at.name)
            at = at.parent
        return tuple(reversed(names))


def to_ranges(raw: list[dict[str, Any]]) -> tuple[NamedRange, ...]:
    ranges: list[NamedRange] = []
    for row in raw:
        place = row["parent"]
        streams = tuple(RangeOnStream(**stream) for stream in row["streams"])
        parent = None if place is None else ranges[place]
        ranges.append(NamedRange(**{**row, "streams": streams, "parent": parent}))
    return tuple(ranges)
