# SPDX-License-Identifier: Apache-2.0
"""Reads a .strobe file by docs/format.md alone and prints every value in it, one a line.

usage: strobe.py FILE        needs the `zstandard` module

It shares no code with pystrobe, so that where both agree the page is right. Slow and plain.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections import Counter

import zstandard
from strobe_gpu import GAPS, GpuRecord, RangeRecord

MAGIC = b"\x89STROBE\n"
(
    QUALITY, STRING_LENGTHS, STRING_BYTES, FUNCTIONS, FRAMES, PARENT_LEVELS, PARENT_FAR,
    CALLEE_RANKS, CALLEE_NEW, THREADS, GROUPS, TIME_LOW, TIME_HIGH, WALL_EXCEPTIONS, CPU_LOW,
    CPU_HIGH, FLAG_RUNS, COUNT_EXCEPTIONS, STACK_RANKS, STACK_IDS, DEADLINES, NATIVE,
) = range(22)  # fmt: skip
COUNTERS = [
    "deadlines",
    "samples",
    "taken",
    "proved",
    "marked",
    "incomplete",
    "late",
    "lost",
    "retries",
    "unresolved",
    "reused",
]
DURATIONS = ["duration", "held", "run_delay", "own_cpu"]
METADATA_TEXTS = ["executable", "python", "host", "pystrobe", "pause"]

MASK = (1 << 64) - 1


def unzigzag(value: int) -> int:
    return value >> 1 if value % 2 == 0 else -(value + 1 >> 1)


class In:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def more(self) -> bool:
        return self.at < len(self.data)

    def u8(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self) -> int:
        return unzigzag(self.varint())

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        return self.take(self.varint()).decode()

    def rate(self) -> float:
        (value,) = struct.unpack(">d", self.varint().to_bytes(8, "little"))
        return value


class Exceptions:
    """A column of values that are mostly as expected."""

    def __init__(self, data: bytes) -> None:
        self.column = In(data)
        self.skip = self.column.varint() if self.column.more() else -1

    def next(self, expected: int) -> int:
        if self.skip != 0:
            self.skip -= 1
            return expected
        value = expected + self.column.zigzag()
        self.skip = self.column.varint() if self.column.more() else -1
        return value


def use(recent: list[int], value: int, size: int) -> None:
    if value in recent:
        recent.remove(value)
    recent.insert(0, value)
    del recent[size:]


class Reader:
    def __init__(self) -> None:
        self.strings = [""]
        self.functions: list[tuple[int, int, int]] = []
        self.native_functions: set[int] = set()
        self.frames: list[tuple[int, int]] = []
        self.stacks: list[tuple[int, int]] = [(0, -1)]
        self.threads: list[list[int]] = []
        self.samples: list[str] = []
        self.metadata: list[str] = []
        self.quality: dict[str, int] = dict.fromkeys(COUNTERS + DURATIONS, 0)
        self.rates = (0.0, 0.0)
        self.cpu_source = ""
        self.pause = ""
        self.thread_times = [0, 0]
        self.limited: int | None = None
        self.cpu_times = [0, 0]
        self.native = [0, 0]
        self.left_out = 0
        self.held_each: Counter[int] = Counter()
        self.timeline_failure = ""
        self.timeline_end = self.uncounted = 0
        self.complete = False
        self.last_new_callee = 0
        self.callees: dict[int, list[int]] = {}
        self.recent: list[int] = []
        self.highest = 0
        self.times: dict[int, int] = {}
        self.version = 0
        self.calls: list[str] = []
        self.open_calls: dict[int, tuple[int, int]] = {}
        self.last_entered: dict[int, int] = {}
        self.records: dict[bytes, GpuRecord | RangeRecord] = {}
        self.next_records: dict[bytes, GpuRecord | RangeRecord] = {}
        self.due: list[int] = []
        self.series = [0, 1, 1]
        self.draws_left = 0

    def read(self, data: bytes) -> None:
        assert data[:8] == MAGIC, "not a .strobe file"
        (self.version,) = struct.unpack_from("<I", data, 8)
        assert self.version in (1, 2), "another version"
        at = 12
        while at < len(data) and not self.complete:
            crc, length, kind = struct.unpack_from("<IIc", data, at)
            assert zlib.crc32(data[at + 4 : at + 9 + length]) == crc, f"damaged at {at}"
            begin, at = at + 9, at + 9 + length
            if kind == b"p":
                continue
            content = In(zstandard.decompress(data[begin:at]))
            sizes = [content.varint() for _ in range(content.varint())]
            columns = [content.take(size) for size in sizes]
            columns += [b""] * (GAPS + 1 - len(columns))
            assert not content.more()
            if kind == b"H":
                self.read_metadata(In(columns[0]))
            elif kind == b"c":
                self.read_calls(*(In(column) for column in columns[:4]))
            elif kind in (b"g", b"n"):
                self.read_record(kind, [In(column) for column in columns])
            elif kind in b"DE":
                self.read_definitions([In(column) for column in columns])
                self.read_samples(columns)
                self.read_quality(In(columns[QUALITY]))
                self.complete = kind == b"E"

    def read_metadata(self, column: In) -> None:
        out = self.metadata
        out.append(f"pid {column.zigzag()}")
        out += [f"argument {column.text()}" for _ in range(column.varint())]
        out += [
            f"{name} {column.text()}"
            for name in ["executable", "python", "host", "pystrobe", "pause"]
        ]
        out.append(f"start unix {column.zigzag()} monotonic {column.zigzag()}")
        out.append(f"rate {column.rate():g} overhead {column.rate():g} cpus {column.varint()}")
        for flag in ("native", "timeline"):
            if column.more() and column.varint():
                out.append(flag)
        for name in ("depth", "clock"):
            if column.more() and (value := column.varint()):
                out.append(f"{name} {value}")
        if column.more():
            out.append(f"gpu failure {column.text()}")

    def read_calls(self, groups: In, moves: In, stacks: In, times: In) -> None:
        while groups.more():
            thread = groups.varint()
            for _ in range(groups.varint()):
                time, stack = self.open_calls.get(thread, (0, 0))
                move = moves.u8()
                if move == 0:
                    to = self.stacks[stack][0]
                elif move == 1:
                    to = self.last_entered[stack]
                else:
                    to = stack + stacks.zigzag()
                    self.last_entered[stack] = to
                time += times.varint()
                self.open_calls[thread] = time, to
                self.calls.append(f"call thread {thread} time {time} stack {to}")

    def read_record(self, kind: bytes, columns: list[In]) -> None:
        is_last = columns[QUALITY].more()
        record = self.next_records.pop(kind, None)
        record = record or (GpuRecord if kind == b"g" else RangeRecord)(Reader())
        record.read(columns)
        (self.records if is_last else self.next_records)[kind] = record

    def string_id(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def stack_id(self, other: Reader, stack: int) -> int:
        if stack == 0:
            return 0
        parent, frame = other.stacks[stack]
        parent = self.stack_id(other, parent)
        function, line = other.frames[frame]
        name, file, first_line = other.functions[function]
        name, file = (self.string_id(other.strings[text]) for text in (name, file))
        node = (
            parent,
            self.frame_id((name, file, first_line), function in other.native_functions, line),
        )
        if node not in self.stacks:
            self.stacks.append(node)
        return self.stacks.index(node)

    def frame_id(self, function: tuple[int, int, int], is_native: bool, line: int) -> int:
        places = [i for i, other in enumerate(self.functions) if other == function]
        same = [i for i in places if (i in self.native_functions) == is_native]
        if not same:
            same = [len(self.functions)]
            self.functions.append(function)
            if is_native:
                self.native_functions.add(same[0])
        frame = same[0], line
        if frame not in self.frames:
            self.frames.append(frame)
        return self.frames.index(frame)

    def read_quality(self, column: In) -> None:
        for name in self.quality:
            self.quality[name] += column.zigzag()
        self.rates = column.rate(), column.rate()
        self.cpu_source = column.text() or self.cpu_source
        if column.more():
            self.pause = column.text() or self.pause
            self.thread_times = [time + column.zigzag() for time in self.thread_times]
        if column.more():
            self.limited = (self.limited or 0) + column.zigzag()
        if column.more():
            self.cpu_times = [time + column.zigzag() for time in self.cpu_times]
        if column.more():
            self.native = [count + column.zigzag() for count in self.native]
        if column.more():
            self.left_out += column.zigzag()
        if column.more():
            bucket = -1
            for _ in range(column.varint()):
                bucket += 1 + column.varint()
                self.held_each[bucket] += column.varint()
        if column.more():
            self.timeline_failure = column.take(column.varint()).decode()
            self.timeline_end, self.uncounted = column.zigzag(), column.varint()

    def read_definitions(self, columns: list[In]) -> None:
        while columns[STRING_LENGTHS].more():
            text = columns[STRING_BYTES].take(columns[STRING_LENGTHS].varint())
            self.strings.append(text.decode())
        column = columns[FUNCTIONS]
        first_new = len(self.functions)
        while column.more():
            name, file, line = self.functions[-1] if self.functions else (0, 0, 0)
            self.functions.append(
                (name + column.zigzag(), file + column.zigzag(), line + column.zigzag())
            )
        while columns[NATIVE].more():
            first_new += columns[NATIVE].varint() + 1
            self.native_functions.add(first_new - 1)
        column = columns[FRAMES]
        while column.more():
            function = (self.frames[-1][0] if self.frames else 0) + column.zigzag()
            self.frames.append((function, self.functions[function][2] + column.zigzag()))
        while columns[PARENT_LEVELS].more():
            self.read_stack(columns)
        column = columns[THREADS]
        while column.more():
            index, *thread = (column.varint() for _ in range(4))
            self.threads[index : index + 1] = [thread]

    def read_stack(self, columns: list[In]) -> None:
        levels = columns[PARENT_LEVELS].u8()
        if levels == 255:
            parent = len(self.stacks) - columns[PARENT_FAR].varint()
        else:
            parent = len(self.stacks) - 1
            for _ in range(levels):
                parent = self.stacks[parent][0]
        recent = self.callees.setdefault(self.stacks[parent][1], [])
        rank = columns[CALLEE_RANKS].u8()
        if rank == 255:
            self.last_new_callee += columns[CALLEE_NEW].zigzag()
            frame = self.last_new_callee
        else:
            frame = recent[rank]
        use(recent, frame, 64)
        self.stacks.append((parent, frame))

    def draw(self) -> bool:
        last, period, state = self.series
        if self.draws_left == 0 or last > 1 << 60:
            return False
        self.draws_left -= 1
        state ^= state >> 12
        state ^= state << 25 & MASK
        state ^= state >> 27
        last += period // 2 + (state * 0x2545F4914F6CDD1D & MASK) // 2048 % period
        self.series = [last, period, state]
        self.due.append(last // 1000)
        return True

    def first_due_after(self, time: int) -> int:
        if not self.due or time < self.due[0]:
            return time
        while self.due[-1] <= time:
            if not self.draw():
                return time
        return next(due for due in self.due if due > time)

    def read_deadlines(self, column: In) -> None:
        self.draws_left = 65536
        del self.due[:-32768]
        while column.more():
            series = [column.varint() for _ in range(3)]
            begin = series[0] // 1000
            while self.due and self.due[-1] < begin and self.draw():
                pass
            while self.due and self.due[-1] >= begin:
                self.due.pop()
            self.due.append(begin)
            self.series = series

    def read_samples(self, columns: list[bytes]) -> None:
        if columns[STACK_RANKS]:
            self.read_deadlines(In(columns[DEADLINES]))
        groups, low, high = In(columns[GROUPS]), In(columns[TIME_LOW]), In(columns[TIME_HIGH])
        cpu_low, cpu_high = In(columns[CPU_LOW]), In(columns[CPU_HIGH])
        walls, counts = Exceptions(columns[WALL_EXCEPTIONS]), Exceptions(columns[COUNT_EXCEPTIONS])
        runs, ranks, ids = In(columns[FLAG_RUNS]), In(columns[STACK_RANKS]), In(columns[STACK_IDS])
        run = flags = thread = 0
        while groups.more():
            thread += groups.varint()
            for _ in range(groups.varint()):
                stored = low.u8() + (high.varint() << 8)
                before = self.times.get(thread, 0)
                if self.version == 1:
                    self.times[thread] = before + stored
                else:
                    self.times[thread] = self.first_due_after(before) + unzigzag(stored)
                wall = walls.next(self.times[thread] - before)
                if run == 0:
                    flags, run = runs.u8(), runs.varint()
                run -= 1
                number = cpu_low.u8() + (cpu_high.varint() << 8)
                cpu = unzigzag(number)
                if flags & 2:
                    cpu += wall
                count = counts.next(1)
                self.samples.append(
                    f"sample thread {thread} time {self.times[thread] * 1000} wall {wall * 1000}"
                    f" cpu {cpu * 1000} stack {self.read_stack_of_sample(ranks, ids)}"
                    f" count {count} flags {flags}"
                )

    def read_stack_of_sample(self, ranks: In, ids: In) -> int:
        rank = ranks.u8()
        if rank < 253:
            stack = self.recent[rank]
        elif rank == 255:
            stack = self.highest - ids.varint()
        elif rank == 254:
            stack = self.highest + 1 + ids.varint()
        else:
            stack = self.highest + 1
            while stack + 1 < len(self.stacks) and self.stacks[stack + 1][0] == stack:
                stack += 1
        self.highest = max(self.highest, stack)
        use(self.recent, stack, 253)
        return stack

    def lines(self) -> list[str]:
        records = [line for kind in sorted(self.records) for line in self.records[kind].lines(self)]
        out = list(self.metadata)
        out += [f"string {i} {text}" for i, text in enumerate(self.strings)]
        for i, (name, file, line) in enumerate(self.functions):
            kind = " native" if i in self.native_functions else ""
            out.append(f"function {i} name {name} file {file} line {line}{kind}")
        out += [f"frame {i} function {f} line {line}" for i, (f, line) in enumerate(self.frames)]
        for i, (parent, frame) in enumerate(self.stacks[1:], 1):
            out.append(f"stack {i} parent {parent} frame {frame}")
        for i, (tid, interpreter, name) in enumerate(self.threads):
            out.append(f"thread {i} tid {tid} interpreter {interpreter} name {name}")
        out += self.samples + self.calls + records
        for names in COUNTERS, DURATIONS:
            out.append("quality " + " ".join(f"{name} {self.quality[name]}" for name in names))
        complete = str(self.complete).lower()
        out.append(
            f"quality achieved {self.rates[0]:g} final {self.rates[1]:g} complete {complete}"
            f" source {self.cpu_source}"
        )
        if self.pause or any(self.thread_times):
            threads, unseen = self.thread_times
            out.append(f"quality pause {self.pause} threads {threads} unseen {unseen}")
        if self.limited is not None:
            out.append(f"quality limited {self.limited}")
        if any(self.cpu_times):
            cpu, unseen = self.cpu_times
            out.append(f"quality cpu {cpu} unseen {unseen}")
        if any(self.native):
            out.append(f"quality native cut {self.native[0]} unfit {self.native[1]}")
        if self.left_out:
            out.append(f"quality left out {self.left_out}")
        if self.uncounted:
            out.append(f"quality uncounted {self.uncounted}")
        if self.timeline_failure:
            out.append(f"quality timeline until {self.timeline_end}: {self.timeline_failure}")
        for bucket, times in sorted(self.held_each.items()):
            out.append(f"quality held bucket {bucket} times {times}")
        return out


def main() -> None:
    reader = Reader()
    with open(sys.argv[1], "rb") as file:
        reader.read(file.read())
    sys.stdout.reconfigure(encoding="utf-8")
    print("\n".join(reader.lines()))


if __name__ == "__main__":
    main()
