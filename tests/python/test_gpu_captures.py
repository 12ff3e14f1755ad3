# SPDX-License-Identifier: Apache-2.0
"""Profilers that step and end while another thread captures a stream into a graph: who waits for a
device meanwhile spoils that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from on_mock_gpu import run

pytestmark = pytest.mark.beside_others

CAPTURING = """
import threading
t.begin()
begun, ends = threading.Event(), threading.Event()
results = []
def capture():
    t.begin()
    stream = t.make_stream()
    results.append(t.begin_capture(stream))
    begun.set()
    ends.wait()
    results.append(t.end_capture(stream))
def captured_meanwhile(function):
    thread = threading.Thread(target=capture)
    thread.start()
    begun.wait()
    try:
        function()
    finally:
        ends.set()
        thread.join()
        begun.clear()
        ends.clear()
"""


def traced(program: str) -> Any:
    return json.loads(run(CAPTURING + program))


def test_a_capture_outlives_the_end_of_a_profiler() -> None:
    found = traced(
        """
profiler = pystrobe.Profiler(mode="gpu")
profiler.start()
for _ in range(10):
    t.launch(5)
captured_meanwhile(profiler.stop)
quality = profiler.profile.gpu.quality
print(json.dumps([results, quality.kernel_launches, quality.line]))
"""
    )
    results, launches, line = found
    assert results == [0, 0], "begun and ended without an error"
    assert launches == 10
    assert "a stream was captured into a graph, so the device was not waited for" in line


def test_a_capture_outlives_the_steps_of_a_schedule() -> None:
    found = traced(
        """
profiler = pystrobe.Profiler(mode="gpu", schedule=gpu.schedule(wait=0, warmup=1, active=1))
profiler.start()
captured_meanwhile(profiler.step)
captured_meanwhile(profiler.step)
line = profiler.profile.gpu.quality.line
profiler.stop()
print(json.dumps([results, line]))
"""
    )
    results, line = found
    assert results == [0, 0, 0, 0]
    assert "at the begin: a stream was captured into a graph" in line
    assert "at the end: a stream was captured into a graph" in line


def test_a_timer_tells_of_a_capture_that_begins_in_its_block() -> None:
    found = traced(
        """
stream = t.make_stream()
timer = gpu.timer(stream=stream)
timer.__enter__()
assert t.begin_capture(stream) == 0
try:
    timer.__exit__(None, None, None)
except pystrobe.GpuError as error:
    print(json.dumps(str(error)))
"""
    )
    assert "captured into a graph" in found


def test_once_it_has_ended_devices_are_waited_for() -> None:
    found = traced(
        """
with pystrobe.Profiler(mode="gpu") as profiler:
    captured_meanwhile(lambda: None)
    t.launch(200_000)
quality = profiler.profile.gpu.quality
print(json.dumps([results, [w.count for w in profiler.profile.gpu.sums], quality.line]))
"""
    )
    results, counts, line = found
    assert results == [0, 0]
    assert counts == [1], "which was not done when the profiler was stopped"
    assert line.startswith("good")
