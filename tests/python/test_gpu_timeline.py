# SPDX-License-Identifier: Apache-2.0
"""Each work of a GPU by itself: what readers of traces make of the files.

The recording is "gpu-timeline" of tests/cpp/write/example_recordings.h, whose content is known; the
last one is taken with the mocks of tests/mock_cuda and tests/mock_cupti.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Example
from on_mock_gpu import run
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from pystrobe_command import Pystrobe

pytestmark = pytest.mark.beside_others

PROCESS = THREAD = 4242
GEMM = "void gemm<float, 128>(float*, int)"
# Row, name, begin and end in microseconds, number of the launch.
WORK = [
    ("stream 13", "copy to the device", 20.0, 1020.032, 1),
    ("stream 13", "copy to the device", 2020.0, 3520.032, 4),
    ("stream 7", GEMM, 100.0, 700.032, 2),
    ("stream 7", GEMM, 701.0, 801.032, 3),
    ("stream 7", GEMM, 2100.0, 2710.032, 5),
    ("stream 7", GEMM, 2711.0, 2801.032, 5),
    ("stream 7 (2)", "set", 300.0, 301.032, None),
]
LAUNCHES = [
    ("cuMemcpyAsync", 10.007, 1),
    ("cuLaunchKernel", 50.007, 2),
    ("cuLaunchKernel", 60.007, 3),
    ("cuMemcpyAsync", 2010.007, 4),
    ("cuGraphLaunch", 2050.007, 5),
]


@pytest.fixture
def trace(example: Example) -> dict[str, Any]:
    """The trace events; what they are in says as little as torch's does."""
    loaded: dict[str, Any] = json.loads(example("gpu-timeline", ".trace.json").read_text())
    return loaded


def names_of_rows(trace: dict[str, Any], what: str) -> dict[tuple[int, int], str]:
    rows = [event for event in trace["traceEvents"] if event["name"] == what]
    key = "name" if what.endswith("name") else "labels"
    return {(row["pid"], row["tid"]): row["args"][key] for row in rows}


def test_trace_events_have_rows_of_devices_and_streams(trace: dict[str, Any]) -> None:
    rows = names_of_rows(trace, "thread_name")
    assert rows[PROCESS, THREAD] == "MainThread"
    work = [
        (
            rows[event["pid"], event["tid"]].rstrip(),
            event["name"],
            event["ts"],
            round(event["ts"] + event["dur"], 3),
            event["args"].get("correlation"),
        )
        for event in trace["traceEvents"]
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    assert sorted(work, key=str) == sorted(WORK, key=str)
    assert names_of_rows(trace, "process_name")[0, 0] == "GPU 0 NVIDIA H100"
    assert names_of_rows(trace, "process_labels") == {(PROCESS, 0): "CPU", (0, 0): "GPU 0"}


def test_trace_events_tell_how_far_to_trust_a_gpu(trace: dict[str, Any]) -> None:
    assert ". GPU: fair (times missing); 2,114 works" in trace["otherData"]["quality"]


def test_nothing_in_a_row_overlaps(trace: dict[str, Any]) -> None:
    """Perfetto drops a slice that begins within another and ends after it."""
    rows = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(rows) == 4
    for row, slices in rows.items():
        open_until: list[float] = []
        for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert row[0] == PROCESS or not open_until
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


def test_flows_of_trace_events_lead_from_launches_to_work(trace: dict[str, Any]) -> None:
    events = trace["traceEvents"]
    launches = [event for event in events if event.get("cat") == "cuda_driver"]
    assert [(e["name"], e["ts"], e["args"]["correlation"]) for e in launches] == LAUNCHES
    assert {(e["pid"], e["tid"], e["dur"]) for e in launches} == {(PROCESS, THREAD, 0)}
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = [e for e in events if e["ph"] == "f"]
    assert {e["cat"] for e in [*starts.values(), *ends]} == {"ac2g"}
    assert {e["bp"] for e in ends} == {"e"}
    # A flow is bound to the slice that came last on its row.
    for flow in [*starts.values(), *ends]:
        before = events[events.index(flow) - 1]
        assert before["ph"] == "X"
        assert [flow[key] for key in ("pid", "tid", "ts")] == [
            before[key] for key in ("pid", "tid", "ts")
        ]
        assert flow["id"] == before["args"]["correlation"]
    assert sorted(starts) == [1, 2, 3, 4, 5]
    assert sorted(e["id"] for e in ends) == [1, 2, 3, 4, 5, 5]


def test_the_calls_of_the_program_are_in_the_same_file(trace: dict[str, Any]) -> None:
    calls = [event for event in trace["traceEvents"] if event.get("cat") == "python"]
    assert sorted((e["name"], e["ts"], e["dur"]) for e in calls) == [
        ("step", 40.0, 30.0),
        ("step", 2040.0, 20.0),
        ("train", 0.0, 4000.0),
    ]
    (launch,) = (e for e in trace["traceEvents"] if e["name"] == "cuGraphLaunch")
    (within,) = (e for e in calls if e["ts"] <= launch["ts"] <= e["ts"] + e["dur"] < 3000)
    assert within["name"] == "step"


class PerfettoTrace:
    """Slices, instants and flows of a trace of Perfetto, by names."""

    def __init__(self, path: Path) -> None:
        trace = perfetto.Trace()
        trace.ParseFromString(path.read_bytes())
        self.tracks: dict[int, tuple[str, int]] = {}  # name and parent
        self.names: dict[tuple[int, int], str] = {}
        self.stacks: dict[tuple[int, int], str] = {}
        self.default: dict[int, int] = {}
        self.open: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        self.slices: list[tuple[Any, ...]] = []
        self.stack_of: dict[str, str] = {}
        for packet in trace.packet:
            self.read(packet)

    def read(self, packet: Any) -> None:
        sequence = packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            name = track.name or track.thread.thread_name or track.process.process_name
            self.tracks[track.uuid] = name, track.parent_uuid
        if packet.HasField("trace_packet_defaults"):
            self.default[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for name in packet.interned_data.event_names:
            self.names[sequence, name.iid] = name.name
        for text in packet.interned_data.debug_annotation_string_values:
            self.stacks[sequence, text.iid] = text.str.decode()
        if packet.HasField("track_event"):
            self.read_event(packet.track_event, sequence, packet.timestamp / 1000)

    def read_event(self, event: Any, sequence: int, time: float) -> None:
        track = self.default[sequence]
        if event.type == perfetto.TrackEvent.TYPE_SLICE_END:
            name, begin, flows = self.open[track].pop()
            self.slices.append((self.tracks[track][0], name, begin, time, flows))
            return
        name = self.names[sequence, event.name_iid]
        for annotation in event.debug_annotations:
            if annotation.string_value_iid:
                self.stack_of[name] = self.stacks[sequence, annotation.string_value_iid]
        flows = [*event.flow_ids, *event.terminating_flow_ids]
        if event.type == perfetto.TrackEvent.TYPE_INSTANT:
            self.slices.append((self.tracks[track][0], name, time, time, flows))
        else:
            self.open[track].append((name, time, flows))


def test_perfetto_has_the_same(example: Example) -> None:
    trace = PerfettoTrace(example("gpu-timeline", ".perfetto-trace"))
    assert not any(trace.open.values())
    of_devices = {
        name
        for name, parent in trace.tracks.values()
        if trace.tracks.get(parent, ("", 0))[0] == "GPU 0 NVIDIA H100"
    }
    assert of_devices == {"stream 7", "stream 7 (2)", "stream 13"}
    work = [one for one in trace.slices if one[0] in of_devices]
    wanted = [(*one[:4], [one[4]] if one[4] else []) for one in WORK]
    assert sorted(work, key=str) == sorted(wanted, key=str)
    on_thread = [(*one[1:3], one[4]) for one in trace.slices if one[0] == "MainThread"]
    launches = [one for one in on_thread if one[0].startswith("cu")]
    assert launches == [(name, time, [number]) for name, time, number in LAUNCHES]
    assert sorted(one[0] for one in on_thread if one[2] == []) == ["step", "step", "train"]
    assert trace.stack_of[GEMM] == "<module> (app.py:30);train (app.py:12);step (app.py:5)"


PROGRAM = """
import threading
def step(stream):
    for _ in range(3):
        t.launch(200, stream)
def train():
    t.begin()
    stream = t.make_stream()
    step(stream)
    t.synchronize(stream)
with pystrobe.Profiler(mode={mode!r}, gpu=True, timeline=True) as profiler:
    train()
    beside = threading.Thread(target=train)
    beside.start()
    beside.join()
profiler.profile.save({path!r})
print(threading.main_thread().native_id, beside.native_id)
"""


@pytest.mark.parametrize("mode", ["gpu", "wall"])
def test_what_a_program_launches_is_there(mode: str, pystrobe: Pystrobe, tmp_path: Path) -> None:
    recording, path = tmp_path / "x.strobe", tmp_path / "x.trace.json"
    threads = [int(tid) for tid in run(PROGRAM.format(mode=mode, path=str(recording))).split()]
    pystrobe.succeed("report", str(recording), "-o", str(path))
    events = json.loads(path.read_text())["traceEvents"]
    launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_driver"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert [(e["name"], e["dur"]) for e in kernels] == [("sleep_200000", 200.0)] * 6
    for kernel in kernels:
        assert kernel["ts"] >= launches[kernel["args"]["correlation"]]["ts"] >= 0
        _, train, step, _ = kernel["args"]["python stack"].rsplit(";", 3)
        assert train.startswith("train (")
        assert step.startswith("step (")
    assert sorted(e["tid"] for e in launches.values()) == sorted(threads * 3)
    by_stream = {e["tid"]: launches[e["args"]["correlation"]]["tid"] for e in kernels}
    assert sorted(by_stream.values()) == sorted(threads)
