# SPDX-License-Identifier: Apache-2.0
"""The ranges that a program named, in reports: the table, JSON, the package, traces.

The recordings are "ranges", "ranges-alone" and "ranges-and-calls" of
tests/cpp/write/example_recordings.h, whose content is known.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Example
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from pystrobe_command import Pystrobe
from readers import REPOSITORY, check_with_ajv

pytestmark = pytest.mark.beside_others

PROCESS = THREAD = 4242
# Name, begin and end in microseconds.
FIRST_LANE = [
    ("step", 5.0, 1500.0),
    ("forward", 5.0, 55.0),
    ("backward", 56.0, 70.0),
    ("all_reduce", 62.0, 64.0),
    ("step", 2000.0, 3600.0),
    ("forward", 2005.0, 2060.0),
    ("backward", 2070.0, 2080.0),
]
SECOND_LANE = [("load ahead", 1000.0, 3000.0)]
ON_THREAD = [*FIRST_LANE, *SECOND_LANE]
# Stream too: from the first work's begin to the last one's end, of what was launched meanwhile.
ON_STREAMS = [
    (7, "step", 100.0, 801.032),
    (7, "forward", 100.0, 700.032),
    (7, "backward", 701.0, 801.032),
    (7, "step", 2100.0, 2801.032),
    (7, "load ahead", 2100.0, 2801.032),
    (7, "forward", 2100.0, 2801.032),
    (13, "step", 20.0, 1020.032),
    (13, "forward", 20.0, 1020.032),
    (13, "step", 2020.0, 3520.032),
    (13, "load ahead", 2020.0, 3520.032),
    (13, "forward", 2020.0, 3520.032),
]


# --- the verb ---


def test_they_stand_below_the_kernels(pystrobe: Pystrobe, example: Example) -> None:
    text = pystrobe.succeed("report", str(example("ranges", ".strobe")), "--gpu").out
    kernels, tree = text.split("Ranges that the program named: 5, begun 8 times.\n")
    assert "What GPUs did: " in kernels
    rows = [line.split() for line in tree.splitlines()[1:6]]
    assert " ".join(rows[0]) == "2 3.50 ms 1.75 ms 3.90 ms 3.90 ms 6 step x2"
    assert [row[-1] for row in rows] == ["x2", "forward", "backward", "all_reduce", "ahead"]
    forward, all_reduce, ahead = (tree.splitlines()[i] for i in (2, 4, 5))
    column = tree.splitlines()[1].index("step")
    assert forward[column:] == "  forward"
    assert all_reduce[column:] == "    NCCL: all_reduce"
    assert ahead[column:] == "load ahead"
    assert "GPU span: from the start of the first work" in " ".join(tree.split())
    assert tree.index("busy: what") < tree.index("Quality of the GPU's figures: ")


def test_without_a_gpu_they_stand_below_the_functions(
    pystrobe: Pystrobe, example: Example, tmp_path: Path
) -> None:
    path = str(example("ranges-alone", ".strobe"))
    text = pystrobe.succeed("report", path).out
    assert text.index("Json.encode") < text.index("Ranges that the program named") < text.index("Q")
    assert "GPU" not in text
    alone = pystrobe.succeed("report", path, "--gpu").out
    assert alone.startswith("The recording does not tell what a GPU did")
    assert "\nRanges that the program named: 5, begun 8 times.\n" in alone
    assert "Json.encode" not in alone
    assert "\nQuality: " in alone
    refused = pystrobe.run("report", path, "--gpu", "-o", str(tmp_path / "x.collapsed"))
    assert refused.code != 0
    assert "does not tell what a GPU did" in refused.err


# --- JSON and the package ---


def test_json_has_them(example: Example) -> None:
    path = example("ranges", ".json", "gpu")
    check_with_ajv(REPOSITORY / "docs" / "json.schema.json", path)
    ranges = json.loads(path.read_text("utf-8"))["ranges"]
    assert [one["name"] for one in ranges["names"]] == [
        *("step", "forward", "backward", "all_reduce", "load ahead")
    ]
    assert [one.get("parent") for one in ranges["names"]] == [None, 0, 0, 2, None]
    assert ranges["names"][3]["domain"] == "NCCL"
    assert ranges["streams"][1] == {
        **{"range": 0, "device": 0, "stream": 13, "instances": 2},
        **{"span_ns": 2_500_064, "busy_ns": 2_500_064, "works": 2},
    }
    assert "ranges" not in json.loads(example("gpu", ".json", "gpu").read_text("utf-8"))


PACKAGE_PROGRAM = """
import sys, pystrobe
report = pystrobe.read(sys.argv[1], mode="gpu")
step, forward, backward, reduce, ahead = report.ranges
assert all(isinstance(one, pystrobe.NamedRange) for one in report.ranges)
assert reduce.path == ("step", "backward", "all_reduce") and reduce.parent is backward
assert reduce.domain == "NCCL" and ahead.path == ("load ahead",) and ahead.streams == ()
assert (step.count, step.host_ns, step.host_seconds) == (2, 3_500_000, 0.0035)
assert [(one.stream, one.works) for one in step.streams] == [(7, 4), (13, 2)]
assert step.streams[0] == pystrobe.RangeOnStream(
    device=0, stream=7, instances=2, span_ns=1_402_064, busy_ns=1_400_128, works=4)
assert report.ranges == pystrobe.read(sys.argv[1]).ranges
print(repr(reduce))
"""


def run_package(program: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_reads_them(example: Example) -> None:
    said = run_package(PACKAGE_PROGRAM, example("ranges", ".strobe"))
    assert said.startswith("NamedRange(name='all_reduce', domain='NCCL', count=1, host_ns=20000")


def test_a_recording_without_them_has_none(example: Example) -> None:
    program = "import sys, pystrobe; print(pystrobe.read(sys.argv[1]).ranges)"
    assert run_package(program, example("shop", ".strobe")) == "()\n"


# --- traces ---


def annotations(path: Path, category: str) -> list[dict[str, Any]]:
    events = json.loads(path.read_text())["traceEvents"]
    return [event for event in events if event.get("cat") == category]


def times(event: dict[str, Any]) -> tuple[str, float, float]:
    return event["name"], event["ts"], round(event["ts"] + event["dur"], 3)


def names_of_rows(path: Path) -> dict[tuple[int, int], str]:
    events = json.loads(path.read_text())["traceEvents"]
    return {
        (event["pid"], event["tid"]): event["args"]["name"].rstrip()
        for event in events
        if event["name"] == "thread_name"
    }


def test_trace_events_have_them_on_their_thread(example: Example) -> None:
    path = example("ranges", ".trace.json")
    on_thread = annotations(path, "user_annotation")
    assert {event["pid"] for event in on_thread} == {PROCESS}
    own = [times(event) for event in on_thread if event["tid"] == THREAD]
    assert sorted(own) == sorted(FIRST_LANE)
    (other,) = (event for event in on_thread if event["tid"] != THREAD)
    assert times(other) == SECOND_LANE[0]
    assert names_of_rows(path)[PROCESS, other["tid"]] == "thread 4242 ranges"
    assert [e["args"] for e in on_thread if e["name"] == "all_reduce"] == [{"domain": "NCCL"}]


def test_trace_events_have_them_on_the_streams(example: Example) -> None:
    events = annotations(example("ranges", ".trace.json"), "gpu_user_annotation")
    assert sorted((event["tid"], *times(event)) for event in events) == sorted(ON_STREAMS)
    for event in events:
        assert event["pid"] == event["args"]["device"] == 0
        assert event["tid"] == event["args"]["stream"]


@pytest.mark.parametrize("name", ["ranges", "ranges-and-calls", "ranges-alone"])
def test_nothing_in_a_row_overlaps(name: str, example: Example) -> None:
    """Perfetto drops a slice that begins within another and ends after it."""
    rows = defaultdict(list)
    events = json.loads(example(name, ".trace.json").read_text())["traceEvents"]
    for event in events:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append(event)
    for slices in rows.values():
        open_until: list[float] = []
        # Of what begins at once, what comes first in the file is around the rest.
        for event in sorted(slices, key=lambda event: event["ts"]):
            _, begin, end = times(event)
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], event
            open_until.append(end)


def test_where_calls_were_traced_they_have_a_row_below(example: Example) -> None:
    path = example("ranges-and-calls", ".trace.json")
    rows = names_of_rows(path)
    on_thread = annotations(path, "user_annotation")
    assert {rows[event["pid"], event["tid"]] for event in on_thread} == {
        *("MainThread ranges", "MainThread ranges (2)")
    }
    assert sorted(map(times, on_thread)) == sorted(ON_THREAD)
    assert len(annotations(path, "python")) == 3


def read_slices(path: Path) -> list[tuple[str, str, str, float, float]]:
    """Track, category, name, begin and end of a trace of Perfetto; ends end what began last."""
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    tracks: dict[int, str] = {}
    default: dict[int, int] = {}
    names: dict[tuple[int, str, int], str] = {}
    open_slices: dict[int, list[tuple[str, str, float]]] = defaultdict(list)
    slices = []
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            tracks[track.uuid] = track.name or track.thread.thread_name
        if packet.HasField("trace_packet_defaults"):
            default[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for kind in ("event_names", "event_categories"):
            for name in getattr(packet.interned_data, kind):
                names[sequence, kind, name.iid] = name.name
        event = packet.track_event
        if event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
            category = names[sequence, "event_categories", event.category_iids[0]]
            name = names[sequence, "event_names", event.name_iid]
            open_slices[default[sequence]].append((category, name, packet.timestamp / 1000))
        elif event.type == perfetto.TrackEvent.TYPE_SLICE_END:
            track = default[sequence]
            one = open_slices[track].pop()
            slices.append((tracks[track], *one, packet.timestamp / 1000))
    assert not any(open_slices.values())
    return slices


@pytest.mark.parametrize("name", ["ranges", "ranges-and-calls"])
def test_perfetto_has_the_same(name: str, example: Example) -> None:
    slices = read_slices(example(name, ".perfetto-trace"))
    on_thread = [one for one in slices if one[1] == "user_annotation"]
    assert sorted(one[2:] for one in on_thread) == sorted(ON_THREAD)
    first, second = {
        "ranges": ("thread 4242", "thread 4242 ranges"),
        "ranges-and-calls": ("MainThread ranges", "MainThread ranges (2)"),
    }[name]
    assert sorted(one[2:] for one in on_thread if one[0] == first) == sorted(FIRST_LANE)
    assert [one[2:] for one in on_thread if one[0] == second] == SECOND_LANE
    on_streams = [one for one in slices if one[1] == "gpu_user_annotation"]
    assert {one[0] for one in on_streams} == {"stream 7 ranges", "stream 13 ranges"}
    assert sorted((int(one[0].split()[1]), *one[2:]) for one in on_streams) == sorted(ON_STREAMS)


def test_without_a_gpu_they_are_on_their_thread(example: Example) -> None:
    events = annotations(example("ranges-alone", ".trace.json"), "user_annotation")
    assert len(events) == len(ON_THREAD)
    assert not annotations(example("ranges-alone", ".trace.json"), "gpu_user_annotation")
