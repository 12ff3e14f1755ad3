# SPDX-License-Identifier: Apache-2.0
"""Ranges of NVTX, which are regions in our own recordings."""

from __future__ import annotations

import pytest
from on_mock_gpu import MOCK, run, start

pytestmark = pytest.mark.beside_others

RANGES = """
with gpu.range("step"):
    with gpu.range("forward"):
        pass
    gpu.range_push("backward")
    gpu.range_pop()
try:
    with gpu.range("fails"):
        raise KeyError
except KeyError:
    pass

@gpu.range("decorated")
def function():
    return 7
assert function() == 7

for wrong in (gpu.range_pop, lambda: gpu.range("never").__exit__(None, None, None)):
    try:
        wrong()
    except pystrobe.InvalidArgumentError as error:
        print(error)
"""

REFUSED = [
    "this thread has no range to pop: it pushed 1, and has popped as many",
    "Call range_pop() once for each range_push() of the same thread.",
    "the region 'never' was not entered",
    "Leave it once for each time that it was entered, as `with` does.",
]


def test_ranges_are_heard_by_a_tool() -> None:
    listener = MOCK / "libnvtx_listener.so"
    said, heard = start(RANGES, False, {"NVTX_INJECTION64_PATH": str(listener)})
    assert said.splitlines() == REFUSED
    assert heard.splitlines() == [
        "push pystrobe: step",
        "push pystrobe: forward",
        "pop pystrobe",
        "push pystrobe: backward",
        "pop pystrobe",
        "pop pystrobe",
        "push pystrobe: fails",
        "pop pystrobe",
        "push pystrobe: decorated",
        "pop pystrobe",
    ]


def test_ranges_need_no_tool_and_no_gpu() -> None:
    assert run(RANGES, driver=False).splitlines() == REFUSED


def test_ranges_are_regions_in_our_own_recordings() -> None:
    said = run(
        """
        def spin():
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
        def pushes():
            gpu.range_push("pushed")
            spin()
            gpu.range_pop()
        with pystrobe.Profiler() as profiler:
            with gpu.range("step"):
                spin()
            pushes()
        names = {f.function for s in profiler.profile.stacks() for f in s.frames}
        print(sorted(n for n in names if "step" in n or "pushed" in n))
        """,
        driver=False,
    )
    assert "step" in said
    assert "pushed" in said
