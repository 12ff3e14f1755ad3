# SPDX-License-Identifier: Apache-2.0
"""A part of a timeline: `report --since --until` of calls, against the whole and the program."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pystrobe as package
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from pystrobe_command import Pystrobe
from test_timeline import as_events, traced

pytestmark = pytest.mark.beside_others

#: Three phases with nothing between.
PROGRAM = """
import time
def step(i): pass
def first():
    for i in range(100): step(i)
def second():
    for i in range(70): step(i)
def third():
    for i in range(30): step(i)
first(); time.sleep(0.2); second(); time.sleep(0.2); third()
"""

Span = tuple[str, float, float]


def spans_of(events: list[dict[str, Any]]) -> list[Span]:
    """In nanoseconds, as they are in the file."""
    return sorted(
        (one["name"], round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000))
        for one in events
        if one["ph"] == "X"
    )


def around_second(spans: list[Span]) -> tuple[int, int]:
    """From the middle of the first sleep to that of the other, in whole milliseconds."""
    ends = {name: (begin, end) for name, begin, end in spans if name != "step"}
    between = [("first", "second"), ("second", "third")]
    middles = [(ends[one][1] + ends[other][0]) / 2 for one, other in between]
    since, until = (round(middle / 1e6) for middle in middles)
    return since, until


def test_a_part_has_what_lies_in_it(pystrobe: Pystrobe, tmp_path: Path) -> None:
    recording = traced(pystrobe, tmp_path, PROGRAM)
    whole = spans_of(as_events(pystrobe, recording))
    since, until = around_second(whole)
    part = ("--since", f"{since}ms", "--until", f"{until}ms")

    def made(name: str) -> Path:
        path = tmp_path / name
        pystrobe.succeed("report", str(recording), *part, "-o", str(path))
        return path

    from_ns, to_ns = since * 1_000_000, until * 1_000_000
    expected = sorted(
        (name, max(begin, from_ns), min(end, to_ns))
        for name, begin, end in whole
        if end > from_ns and begin <= to_ns
    )
    chrome = json.loads(made("part.trace.json").read_text())
    assert spans_of(chrome["traceEvents"]) == expected
    assert Counter(name for name, *_ in expected) == {"<module>": 1, "second": 1, "step": 70}
    cut = "(a generator's as often as it went on); 1 had begun before and 1 goes on after it"
    assert f"71 calls began in it {cut}" in chrome["otherData"]["part"]

    told = json.loads(made("part.json").read_text())
    assert told["range"] == {
        **{"since_ns": from_ns, "until_ns": to_ns},
        **{"calls_began": 71, "calls_began_before": 1, "calls_going_on": 1},
    }
    functions = {row["name"]: row for row in told["functions"]}
    assert {name: row["self"]["samples"] for name, row in functions.items()} == {
        **{"<module>": 0, "second": 1, "step": 70}
    }
    assert told["total"]["wall_ns"] == to_ns - from_ns
    ((_, begin, end),) = (span for span in expected if span[0] == "second")
    assert functions["second"]["total"]["wall_ns"] == end - begin
    assert "cpu_ns" not in told["total"]

    opened = json.loads(made("part.speedscope.json").read_text())
    (profile,) = opened["profiles"]
    assert (profile["startValue"], profile["endValue"]) == (from_ns, to_ns)
    assert len(profile["events"]) == 2 * len(expected)
    assert {from_ns, to_ns} <= {event["at"] for event in profile["events"]}
    trace = perfetto.Trace()
    trace.ParseFromString(made("part.perfetto-trace").read_bytes())
    times = [packet.timestamp for packet in trace.packet if packet.HasField("track_event")]
    assert (len(times), min(times), max(times)) == (2 * len(expected), from_ns, to_ns)
    assert cut in made("part.html").read_text()
    assert cut in made("part.callgrind").read_text()

    table = " ".join(pystrobe.succeed("report", str(recording), *part).out.split())
    assert cut in table
    assert "Quality of the whole recording" in table
    read = package.read(recording, since=since / 1e3, until=until / 1e3)
    assert {row.name: row.self.samples for row in read.functions} == {
        **{"<module>": 0, "second": 1, "step": 70}
    }


def test_a_part_has_no_cpu_time(pystrobe: Pystrobe, tmp_path: Path) -> None:
    recording = traced(pystrobe, tmp_path, PROGRAM, "--clock", "cpu")
    assert "of cpu time" in pystrobe.succeed("report", str(recording)).out
    assert "of wall time" in pystrobe.succeed("report", str(recording), "--since", "50ms").out
    refused = pystrobe.run("report", str(recording), "--since", "50ms", "--mode", "cpu")
    assert refused.code != 0
    assert "a part of a timeline has no CPU time" in refused.err
    with pytest.raises(package.InvalidArgumentError, match="no CPU time"):
        package.read(recording, since=0.05, mode="cpu")


def test_a_killed_program_has_parts_too(pystrobe: Pystrobe, tmp_path: Path) -> None:
    program = """
import os, signal, time
def early(): pass
def late(): time.sleep(0.25)
for i in range(500): early()
for i in range(10): late()
os.kill(os.getpid(), signal.SIGKILL)
"""
    recording = traced(pystrobe, tmp_path, program, code=137)
    spans = spans_of(as_events(pystrobe, recording))
    after = max(end for name, _, end in spans if name == "early") // 1_000_000 + 1
    made = tmp_path / "part.json"
    pystrobe.succeed("report", str(recording), "--since", f"{after}ms", "-o", str(made))
    told = json.loads(made.read_text())
    late = [begin for name, begin, _ in spans if name == "late" and begin > after * 1_000_000]
    names = {row["name"]: row["self"]["samples"] for row in told["functions"]}
    assert "early" not in names
    assert names["late"] == len(late)
    by_cpu = " ".join(pystrobe.succeed("report", str(recording), "--mode", "cpu").out.split())
    assert "The program was killed, so its calls have no CPU time. --mode wall shows" in by_cpu


def test_without_a_timeline_there_is_no_part(pystrobe: Pystrobe, tmp_path: Path) -> None:
    script, recording = tmp_path / "program.py", tmp_path / "x.strobe"
    script.write_text("def f(): pass\nf()\n")
    pystrobe.succeed("trace", "-o", str(recording), str(script))
    refused = pystrobe.run("report", str(recording), "--since", "1ms")
    assert refused.code != 0
    assert "trace the program again with --timeline" in refused.err
