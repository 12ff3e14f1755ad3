# SPDX-License-Identifier: Apache-2.0
"""What strobe.py reads of GPUs and of the ranges that a program named, by docs/format.md alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strobe import In, Reader

QUALITY = 0
GPU_DEVICES, GPU_KERNELS, GPU_SUMS, GPU_STACKS, GPU_OCCUPANCIES = range(10, 15)
SPAN_SUMS, SPAN_BEGINS, SPAN_TIMES, SPAN_LAUNCHES, SPAN_THREADS = range(15, 20)
USES, IDLES, WAITS, GAPS = range(22, 26)
GPU_COUNTERS = [
    "kernels", "graphs", "copies", "sets", "failed", "records", "unmatched", "dropped",
    "overflowed", "duration", "own_cpu",
]  # fmt: skip
RANGES, RANGE_STREAMS = 10, 11
RANGE_SPANS, RANGE_ENDS, RANGE_TIMES, RANGE_THREADS = range(12, 16)


class GpuRecord:
    """One record, whose definitions are those of a reader of its own."""

    def __init__(self, definitions: Reader) -> None:
        self.definitions = definitions
        self.devices: list[list[int]] = []
        self.kernels: list[tuple[int, list[int]]] = []
        self.sums: list[list[int]] = []
        self.buckets: list[str] = []
        self.stacks: list[int] = []
        self.occupancies: dict[int, str] = {}
        self.spans: list[str] = []
        self.last_times: dict[int, tuple[int, int]] = {}
        self.last_end = self.last_launch = self.last_tid = 0
        self.uses: list[list[int]] = []
        self.idles: list[list[int]] = []
        self.waits: list[list[int]] = []
        self.gaps: list[tuple[int, int, int, int]] = []
        self.quality: list[int] = []

    def read(self, columns: list[In]) -> None:
        self.definitions.read_definitions(columns)
        column = columns[GPU_DEVICES]
        while column.more():
            self.devices.append([column.varint() for _ in range(3)])
        column = columns[GPU_KERNELS]
        while column.more():
            self.kernels.append((column.u8(), [column.varint() for _ in range(11)]))
        column = columns[GPU_SUMS]
        while column.more():
            self.sums.append([column.varint() for _ in range(13)])
            filled = column.varint()
            buckets = [i for i in range(32) if filled >> i & 1]
            self.buckets.append("".join(f" bucket {i} {column.varint()}" for i in buckets))
        while columns[GPU_STACKS].more():
            last = self.stacks[-1] if self.stacks else 0
            self.stacks.append(last + columns[GPU_STACKS].zigzag())
        column = columns[GPU_OCCUPANCIES]
        while column.more():
            of_sum = column.varint()
            self.occupancies[of_sum] = (
                f" blocks {column.varint()} theoretical {column.rate():g} waves {column.rate():g}"
                f" tail {column.rate():g}"
            )
        while columns[SPAN_SUMS].more():
            self.read_span(columns)
        self.read_idle_time(columns)
        while columns[QUALITY].more():
            self.quality.append(columns[QUALITY].varint())

    def read_idle_time(self, columns: list[In]) -> None:
        while columns[USES].more():
            self.uses.append([columns[USES].varint() for _ in range(3)])
        column = columns[IDLES]
        while column.more():
            device, cause = column.varint(), column.u8()
            before, after = self.idles[-1][2:4] if self.idles else (0, 0)
            places = [before + column.zigzag(), after + column.zigzag()]
            self.idles.append([device, cause, *places, *(column.varint() for _ in range(3))])
        column = columns[WAITS]
        while column.more():
            stack = (self.waits[-1][0] if self.waits else 0) + column.zigzag()
            self.waits.append([stack, *(column.varint() for _ in range(3))])
        column = columns[GAPS]
        while column.more():
            _, _, last_end, last_tid = self.gaps[-1] if self.gaps else (0, 0, 0, 0)
            idle, begin = column.varint(), last_end + column.zigzag()
            end = begin + column.varint()
            self.gaps.append((idle, begin, end, last_tid + column.zigzag()))

    def read_span(self, columns: list[In]) -> None:
        of_sum = columns[SPAN_SUMS].varint()
        is_kernel = self.kernels[self.sums[of_sum][0]][0] == 0
        duration, size = self.last_times.get(of_sum, (0, 0))
        begin = self.last_end + columns[SPAN_BEGINS].zigzag()
        duration += columns[SPAN_TIMES].zigzag()
        size += 0 if is_kernel else columns[SPAN_TIMES].zigzag()
        launch = self.last_launch + columns[SPAN_LAUNCHES].zigzag()
        self.last_times[of_sum] = duration, size
        self.last_end = begin + duration
        self.last_launch = launch or self.last_launch
        self.last_tid += columns[SPAN_THREADS].zigzag()
        self.spans.append(
            f"gpu span sum {of_sum} begin {begin} end {self.last_end} tid {self.last_tid}"
            f" launch {launch} bytes {size}"
        )

    def lines(self, to: Reader) -> list[str]:
        """With the ids that `to` has for them, or gets."""
        texts = self.definitions.strings
        out = []
        for number, name, processors in self.devices:
            name = to.string_id(texts[name])
            out.append(f"gpu device {number} name {name} multiprocessors {processors}")
        for kind, (name, short, *numbers) in self.kernels:
            name, short = to.string_id(texts[name]), to.string_id(texts[short])
            block, cluster = ("x".join(map(str, numbers[i : i + 3])) for i in (0, 3))
            out.append(
                f"gpu kernel kind {kind} name {name} short {short} block {block} cluster {cluster}"
                f" registers {numbers[6]} shared {numbers[7]} {numbers[8]}"
            )
        for i, (kernel, device, stream, *numbers, advice) in enumerate(self.sums):
            stack = to.stack_id(self.definitions, self.stacks[i])
            count, untimed, total, least, most, size, *grid = numbers
            out.append(
                f"gpu sum stack {stack} kernel {kernel} device {device} stream {stream}"
                f" count {count} untimed {untimed} total {total} min {least} max {most}"
                f" bytes {size} grid {'x'.join(map(str, grid))}"
                f" advice {to.string_id(texts[advice])}"
                + self.buckets[i]
                + self.occupancies.get(i, "")
            )
        out += self.spans
        out += [f"gpu use {device} busy {busy} idle {idle}" for device, busy, idle in self.uses]
        for device, cause, before, after, count, total, most in self.idles:
            before = to.stack_id(self.definitions, before)
            after = to.stack_id(self.definitions, after)
            out.append(
                f"gpu idle device {device} cause {cause} from {before} to {after}"
                f" count {count} total {total} max {most}"
            )
        for stack, count, total, most in self.waits:
            stack = to.stack_id(self.definitions, stack)
            out.append(f"gpu wait stack {stack} count {count} total {total} max {most}")
        for idle, begin, end, tid in self.gaps:
            out.append(f"gpu gap idle {idle} begin {begin} end {end} tid {tid}")
        known = len(GPU_COUNTERS)
        numbers, (source, lost, *later) = self.quality[:known], self.quality[known:]
        captured, of_graphs, launches_only = [*later, 0, 0, 0][:3]
        if captured + of_graphs > 0:
            out.append(f"gpu graphs captured {captured} records {of_graphs}")
        if launches_only:
            out.append("gpu launches only")
        counters = " ".join(f"{name} {n}" for name, n in zip(GPU_COUNTERS, numbers))
        source = to.string_id(texts[source])
        out.append(f"gpu quality {counters} source {source} spans lost {lost}")
        return out


class RangeRecord:
    """One record of ranges."""

    def __init__(self, definitions: Reader) -> None:
        self.definitions = definitions
        self.ranges: list[tuple[int | None, list[int]]] = []
        self.streams: list[str] = []
        self.spans: list[str] = []
        self.durations: dict[int, int] = {}
        self.last_range = self.last_end = self.last_tid = 0
        self.quality: list[int] = []

    def read(self, columns: list[In]) -> None:
        self.definitions.read_definitions(columns)
        column = columns[RANGES]
        while column.more():
            up = column.varint()
            parent = len(self.ranges) - up if up else None
            self.ranges.append((parent, [column.varint() for _ in range(4)]))
        column = columns[RANGE_STREAMS]
        while column.more():
            self.last_range += column.zigzag()
            self.streams.append(
                f"range on stream range {self.last_range} device {column.varint()}"
                f" stream {column.varint()} instances {column.varint()} span {column.varint()}"
                f" busy {column.varint()} works {column.varint()}"
            )
        while columns[RANGE_SPANS].more():
            self.read_span(columns)
        while columns[QUALITY].more():
            self.quality.append(columns[QUALITY].varint())

    def read_span(self, columns: list[In]) -> None:
        of_range = columns[RANGE_SPANS].varint()
        self.last_end += columns[RANGE_ENDS].zigzag()
        duration = self.durations.get(of_range, 0) + columns[RANGE_TIMES].zigzag()
        self.durations[of_range] = duration
        self.last_tid += columns[RANGE_THREADS].zigzag()
        self.spans.append(
            f"range span range {of_range} begin {self.last_end - duration} end {self.last_end}"
            f" tid {self.last_tid}"
        )

    def lines(self, to: Reader) -> list[str]:
        """With the ids that `to` has for them, or gets."""
        texts = self.definitions.strings
        out = []
        for parent, (name, domain, count, host) in self.ranges:
            name, domain = (to.string_id(texts[text]) for text in (name, domain))
            out.append(
                f"range parent {'none' if parent is None else parent} name {name} domain {domain}"
                f" count {count} host {host}"
            )
        out += self.streams + self.spans
        lost, overflowed, *_ = self.quality
        out.append(f"range quality spans lost {lost} overflowed {overflowed}")
        return out
