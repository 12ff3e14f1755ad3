# SPDX-License-Identifier: Apache-2.0
"""Threads that begin and end while a program samples itself by CPU time."""

from __future__ import annotations

import pytest
from own_program import answer
from test_profiler_neighbours import neighbours

pytest.importorskip("pystrobe", reason="the package is not installed: make build")

__all__ = ["neighbours"]

# Of each thread, what it used before it was looked at first.
UNSEEN = """
import json, os, threading, pystrobe
def unseen(profile, name):
    found = [t.tid for t in profile.report(include_idle=True).threads if t.name == name]
    return [profile.report(thread=str(tid), include_idle=True).unseen.cpu_ns / 1e6 for tid in found]
"""
# A tenth of a second of each thread's time; of which it does not have all.
MOST_MS = 100


def test_new_threads_are_soon_seen_by_name() -> None:
    said = answer(
        UNSEEN
        + """
with pystrobe.Profiler(rate=1000) as profiler:
    spin(0.05)
    for _ in range(3):
        threads = [threading.Thread(target=spin, args=(0.12,), name="worker") for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
profile = profiler.profile
print(json.dumps({"unseen": unseen(profile, "worker"),
    "threads": [t.name for t in profile.report(include_idle=True).threads]}))
"""
    )
    assert len(said["unseen"]) == 12, said
    assert max(said["unseen"]) < MOST_MS


def test_new_threads_of_c_are_soon_seen(neighbours: str) -> None:
    said = answer(
        UNSEEN
        + f"""
import ctypes
c = ctypes.CDLL({neighbours!r})
c.burn_in_threads.argtypes = [ctypes.c_int, ctypes.c_double]
with pystrobe.Profiler(rate=1000) as profiler:
    spin(0.05)
    made = [c.burn_in_threads(4, 0.15) for _ in range(2)]
print(json.dumps({{"unseen": unseen(profiler.profile, "of c"), "made": made}}))
"""
    )
    assert said["made"] == [4, 4]
    assert len(said["unseen"]) == 8, said
    assert max(said["unseen"]) < MOST_MS


def test_threads_that_have_ended_are_let_go() -> None:
    """Of each there is a descriptor while it is sampled."""
    said = answer(
        """
import json, os, threading, pystrobe
def files(): return len(os.listdir("/proc/self/fd"))
with pystrobe.Profiler(rate=1000) as profiler:
    before, most = files(), 0
    for _ in range(5):
        ended = threading.Event()
        threads = [threading.Thread(target=ended.wait) for _ in range(8)]
        for thread in threads: thread.start()
        deadline = time.monotonic() + 10
        while files() < before + 8 and time.monotonic() < deadline: time.sleep(0.005)
        most = max(most, files())
        ended.set()
        for thread in threads: thread.join()
        deadline = time.monotonic() + 10
        while files() > before and time.monotonic() < deadline: time.sleep(0.005)
    after = files()
print(json.dumps({"before": before, "most": most, "after": after,
    "source": profiler.profile.quality.cpu_source}))
"""
    )
    if said["source"] == "CPU timer":
        pytest.skip("a timer takes no descriptor")
    assert said["most"] == said["before"] + 8
    assert said["after"] == said["before"]
