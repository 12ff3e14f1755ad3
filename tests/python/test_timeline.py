# SPDX-License-Identifier: Apache-2.0
"""Each call by itself, with its time: timelines, and what reads them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from call_tracing import Way, each_engine, told
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from pystrobe_command import Pystrobe
from test_outputs import ROOT_ONLY, small_disk

EXACT = """
import os
def leaf():
    pass
def recursion(n):
    leaf()
    if n:
        recursion(n - 1)
def fails(n):
    if n == 0:
        raise KeyError
    fails(n - 1)
def generator(n):
    for i in range(n):
        yield i
def work():
    recursion(3)
    with contextlib.suppress(KeyError):
        fails(2)
    for i in generator(2):
        leaf()
NAMES = ("work", "leaf", "recursion", "fails", "generator")
def events(tracer, path):
    tracer.save(path)
    with open(path) as file:
        found = json.load(file)["traceEvents"]
    os.remove(path)
    return found
"""


def nested(spans: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Names and depths in order of their begins; each span has to be within the one around it."""
    spans = sorted(spans, key=lambda span: (span["ts"], -span["dur"]))
    found: list[tuple[str, int]] = []
    open_until: list[float] = []
    for span in spans:
        end = round(span["ts"] + span["dur"], 3)
        while open_until and open_until[-1] <= span["ts"]:
            open_until.pop()
        assert not open_until or end <= open_until[-1]
        found.append((span["name"].rpartition(".")[2], len(open_until)))
        open_until.append(end)
    return found


@each_engine
def test_each_call_is_a_span_within_its_callers(way: Way, tmp_path: Path) -> None:
    path = way.by.directory(tmp_path) / "x.trace.json"
    spans = told(
        way,
        f"""{EXACT}
tracer = traced(work, timeline=True)
print(json.dumps([one for one in events(tracer, {way.by.seen(path)!r})
                  if one["ph"] == "X" and one["name"] in NAMES]))
""",
    )
    # What took no time that the clock can tell has no order to the next.
    assert Counter(span["name"] for span in spans) == {
        **{"work": 1, "leaf": 6, "recursion": 4, "fails": 3, "generator": 3},
    }
    names = nested(spans)
    assert names[0] == ("work", 0)
    assert max(depth for name, depth in names if name == "recursion") == 4
    assert max(depth for name, depth in names if name == "fails") == 3
    assert {depth for name, depth in names if name == "generator"} == {1}


@each_engine
def test_none_is_lost_and_times_add_up(way: Way, tmp_path: Path) -> None:
    path = way.by.directory(tmp_path) / "x.trace.json"
    counted, spans, threads, totals = told(
        way,
        f"""{EXACT}
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def work():
    fib(14)
def both():
    threads = [threading.Thread(target=work, name="beside") for _ in range(2)]
    for thread in threads: thread.start()
    work()
    for thread in threads: thread.join()
tracer = traced(both, timeline=True)
found = events(tracer, {way.by.seen(path)!r})
spans = [one for one in found if one["ph"] == "X" and one["name"] == "fib"]
threads = [one["args"]["name"] for one in found if one["name"] == "thread_name"]
totals = [row.total for row in tracer.stats() if row.function == "work"]
print(json.dumps([tracer.call_counts(), collections.Counter(s["tid"] for s in spans),
                  threads, [totals, sum(one["dur"] for one in found if one["name"] == "work")]]))
""",
    )
    calls = 1219
    assert list(spans.values()) == [calls] * 3
    assert [count for key, count in counted.items() if key.endswith(":fib")] == [3 * calls]
    assert sorted(threads) == ["MainThread", "beside", "beside"]
    (in_table,), in_spans_us = totals
    assert in_spans_us / 1e6 == pytest.approx(in_table, rel=1e-3, abs=20e-6)


def test_perfetto_reads_what_chrome_tracing_does(pystrobe: Pystrobe, tmp_path: Path) -> None:
    recording = traced(pystrobe, tmp_path, PROGRAM)
    events = as_events(pystrobe, recording)
    calls = Counter(event["name"] for event in events if event["ph"] == "X")
    path = recording.with_suffix(".perfetto-trace")
    pystrobe.succeed("report", str(recording), "-o", str(path))
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    names: dict[tuple[int, int], str] = {}
    begins: Counter[str] = Counter()
    open_calls: Counter[int] = Counter()
    last: dict[int, int] = {}
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        for name in packet.interned_data.event_names:
            names[sequence, name.iid] = name.name
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last.get(sequence, 0)
        last[sequence] = packet.timestamp
        event = packet.track_event
        if event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
            begins[names[sequence, event.name_iid]] += 1
            open_calls[sequence] += 1
        else:
            open_calls[sequence] -= 1
            assert open_calls[sequence] >= 0
    assert begins == calls
    assert begins["step"] == 1000
    assert set(open_calls.values()) == {0}
    threads = [packet.track_descriptor.thread for packet in trace.packet]
    assert {thread.thread_name for thread in threads if thread.tid} == {"MainThread", "beside"}


def test_speedscope_has_each_call_in_order(pystrobe: Pystrobe, tmp_path: Path) -> None:
    recording = traced(pystrobe, tmp_path, PROGRAM)
    path = recording.with_suffix(".speedscope.json")
    pystrobe.succeed("report", str(recording), "-o", str(path))
    found = json.loads(path.read_text())
    names = [frame["name"] for frame in found["shared"]["frames"]]
    assert len(found["profiles"]) == 2
    steps = 0
    for profile in found["profiles"]:
        assert profile["type"] == "evented"
        open_calls: list[int] = []
        at = profile["startValue"]
        for event in profile["events"]:
            assert at <= event["at"] <= profile["endValue"]
            at = event["at"]
            if event["type"] == "O":
                open_calls.append(event["frame"])
                steps += names[event["frame"]] == "step"
            else:
                assert open_calls.pop() == event["frame"]
        assert not open_calls
    assert steps == 1000


PROGRAM = """
import threading
def step(i): return i
def work():
    for i in range(500): step(i)
thread = threading.Thread(target=work, name="beside")
thread.start(); work(); thread.join()
"""


def traced(pystrobe: Pystrobe, tmp_path: Path, program: str, *options: str, code: int = 0) -> Path:
    script, recording = tmp_path / "program.py", tmp_path / "x.strobe"
    script.write_text(program)
    finished = pystrobe.run(
        *("trace", "--python", sys.executable, "--timeline", "-o", str(recording)),
        *(*options, str(script)),
    )
    assert finished.code == code, finished
    return recording


def as_events(pystrobe: Pystrobe, recording: Path) -> list[dict[str, Any]]:
    path = recording.with_suffix(".trace.json")
    pystrobe.succeed("report", str(recording), "--force", "-o", str(path))
    return list(json.loads(path.read_text())["traceEvents"])


def test_the_loading_of_the_program_is_not_in_it(pystrobe: Pystrobe, tmp_path: Path) -> None:
    events = as_events(pystrobe, traced(pystrobe, tmp_path, PROGRAM))
    spans = [event for event in events if event["ph"] == "X"]
    assert not [span for span in spans if "/pystrobe/" in span["args"]["file"]]
    (module,) = (
        one
        for one in spans
        if one["args"]["file"].endswith("/program.py") and one["name"] == "<module>"
    )
    around = [
        span["name"]
        for span in spans
        if span["tid"] == module["tid"]
        and span["ts"] < module["ts"]
        and span["ts"] + span["dur"] > module["ts"] + module["dur"]
    ]
    assert around == []


def test_a_format_of_timelines_is_enough_to_ask_for_one(pystrobe: Pystrobe, tmp_path: Path) -> None:
    script, made = tmp_path / "program.py", tmp_path / "x.trace.json"
    script.write_text(PROGRAM)
    pystrobe.succeed("trace", "--python", sys.executable, "-o", str(made), str(script))
    names = Counter(event["name"] for event in json.loads(made.read_text())["traceEvents"])
    assert names["step"] == 1000


def test_a_trace_without_one_tells_how_to_get_one(pystrobe: Pystrobe, tmp_path: Path) -> None:
    script, recording = tmp_path / "program.py", tmp_path / "x.strobe"
    script.write_text(PROGRAM)
    pystrobe.succeed("trace", "--python", sys.executable, "-o", str(recording), str(script))
    made = tmp_path / "x.perfetto-trace"
    finished = pystrobe.run("report", str(recording), "-o", str(made))
    assert finished.code != 0
    assert "--timeline" in finished.err
    assert not made.exists()


def test_sampling_has_no_timeline(pystrobe: Pystrobe, tmp_path: Path) -> None:
    finished = pystrobe.run("run", "-o", str(tmp_path / "x.trace.json"), "-m", "this")
    assert finished.code == 2
    assert "pystrobe trace" in finished.err


def test_of_a_killed_program_it_is_there_up_to_a_second_before(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    program = """
import os, signal, time
def early(): pass
def late(): pass
for i in range(1000): early()
for i in range(8): time.sleep(0.25); late()
os.kill(os.getpid(), signal.SIGKILL)
"""
    recording = traced(pystrobe, tmp_path, program, code=137)
    names = Counter(event["name"] for event in as_events(pystrobe, recording))
    assert names["early"] == 1000
    assert names["late"] >= 2
    table = pystrobe.run("report", str(recording))
    assert "early" in table.out
    assert "cut off" in table.out
    assert table.err == ""
    stacks = pystrobe.run("report", str(recording), "-f", "collapsed")
    assert "early" in stacks.out
    assert "without an end block" in stacks.err


@pytest.mark.parametrize(
    ("fork", "leave"),
    [("os.fork()", "os._exit(0)"), ("ctypes.PyDLL(None).fork()", "sys.exit()")],
    ids=["of Python", "of C"],
)
def test_a_child_made_by_fork_writes_nothing_into_it(
    pystrobe: Pystrobe, tmp_path: Path, fork: str, leave: str
) -> None:
    program = f"""
import ctypes, os, sys
def parent(): pass
def child(): pass
pid = {fork}
if pid == 0:
    for i in range(50_000): child()
    {leave}
assert os.waitpid(pid, 0)[1] == 0
parent()
"""
    names = Counter(e["name"] for e in as_events(pystrobe, traced(pystrobe, tmp_path, program)))
    assert names["parent"] == 1
    assert names["child"] == 0


def test_forks_while_another_thread_calls_what_is_new(pystrobe: Pystrobe, tmp_path: Path) -> None:
    """Which the writer asks about, with a lock: the child has it as it was."""
    program = """
import os, threading
goes_on = True
def calls():
    n = 0
    while goes_on:
        exec(f"def f{n}(): pass\\nf{n}()", {})
        n += 1
thread = threading.Thread(target=calls)
thread.start()
for _ in range(300):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
goes_on = False
thread.join()
def parent(): pass
parent()
"""
    names = Counter(e["name"] for e in as_events(pystrobe, traced(pystrobe, tmp_path, program)))
    assert names["parent"] == 1


@ROOT_ONLY
def test_a_full_disk_ends_the_timeline_and_not_the_program(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import random\ndef step(i): return i\n"
        "for i in range(2_000_000): step(i + random.getrandbits(i % 7 + 1))\nprint('done')\n"
    )
    options = ("trace", "--python", sys.executable, "--timeline", "--no-stdlib")
    with small_disk(tmp_path / "small", "256k") as disk:
        finished = pystrobe.run(*options, "-o", str(disk / "x.strobe"), str(script))
        report = pystrobe.succeed("report", str(disk / "x.strobe"), "-f", "json").out
        recording = shutil.copy(disk / "x.strobe", tmp_path)
    names = Counter(e["name"] for e in as_events(pystrobe, Path(recording)))
    part = pystrobe.succeed("report", recording, "--since", "5ms", "--until", "99", "-f", "json")
    end_ns = json.loads(part.out)["quality"]["timeline_end_ns"]
    assert json.loads(part.out)["range"]["until_ns"] == end_ns
    assert json.loads(part.out)["range"]["calls_going_on"] >= 1, "the module's own"
    late = pystrobe.run("report", recording, "--since", f"{end_ns / 1e9 + 0.001:.6f}")
    assert late.code == 1
    assert "No space left" in late.err
    assert "Let the range begin before that" in late.err
    assert finished.code == 0
    assert finished.out.startswith("done")
    assert "the timeline ends early" in finished.err
    assert "No space left" in finished.err
    assert "what could be kept" not in finished.err
    assert re.search(r"^ +2,000,000 .* step ", finished.err, re.MULTILINE)
    assert "every call of Python traced, 2,000," in finished.err
    quality = json.loads(report)["quality"]
    assert quality["complete"]
    assert 2_000_001 <= quality["taken"] < 2_001_000
    assert "No space left" in quality["timeline_failure"]
    assert 0 < quality["timeline_end_ns"] < quality["duration_ns"]
    assert names["<module>"] == 1
    assert 10_000 < names["step"] < 2_000_000


@ROOT_ONLY
def test_a_tracer_tells_that_its_timeline_ends_early(tmp_path: Path) -> None:
    code = """
import sys, pystrobe
def step(i): return i
with pystrobe.Tracer(timeline=True) as tracer:
    for i in range(2_000_000): step(i)
print(tracer.trouble, tracer.call_counts()["3:step"], sep="\\n")
profile = tracer.profile()
print(profile.report().quality.timeline_failure == tracer.trouble.partition(": ")[2])
try:
    profile.save(sys.argv[1])
except pystrobe.Error as error:
    print(error)
"""
    path = tmp_path / "x.trace.json"
    said = []
    for size in ("256k", "4k"):
        with small_disk(tmp_path / f"disk-{size}", size) as disk:
            (disk / "others").write_bytes(b"" if size == "256k" else bytes(4096))
            done = subprocess.run(
                [sys.executable, "-c", code, str(path)],
                env={**os.environ, "TMPDIR": str(disk)},
                capture_output=True,
                text=True,
                check=True,
            )
        lines = done.stdout.splitlines()
        assert re.match("the timeline ends early: .*No space left on device$", lines[0])
        assert lines[1:3] == ["2000000", "True"]
        said.append(lines[3:])
    assert said[0] == []
    assert 10_000 < path.read_text().count('"name":"step"') < 2_000_000
    assert re.search("could not be kept: .*No space left", said[1][0])
    assert "TMPDIR" in "".join(said[1])


def test_a_tracer_without_a_file_has_one_in_the_directory_for_temporary_ones(
    tmp_path: Path,
) -> None:
    code = """
import os, pystrobe
with pystrobe.Tracer(timeline=True):
    found = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3, 30)
             if os.path.lexists(f"/proc/self/fd/{fd}")]
print(any(place.startswith(os.environ["TMPDIR"]) for place in found))
"""
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout == "True\n"
    assert not list(tmp_path.iterdir())


def test_one_that_cannot_begin_leaves_the_way_free() -> None:
    code = """
import resource, pystrobe
def f(): pass
tracer = pystrobe.Tracer(timeline=True)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
with pystrobe.Tracer(): f()
resource.setrlimit(resource.RLIMIT_NOFILE, (4, limits[1]))
try:
    tracer.start()
    print("began")
except pystrobe.Error as error:
    print("refused")
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
with pystrobe.Tracer(timeline=True) as later: f()
print([count for key, count in later.call_counts().items() if key.endswith(":f")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "refused\n[1]\n"
