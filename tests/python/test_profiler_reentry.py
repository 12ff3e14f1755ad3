# SPDX-License-Identifier: Apache-2.0
"""What the program calls while a profiler is being started, stopped or stepped on the same thread:
refused, where it would wait for itself."""

from __future__ import annotations

import pytest
from own_program import answer

pytest.importorskip("pystrobe", reason="the package is not installed: make build")


def test_a_schedule_that_stops_its_profiler_is_refused() -> None:
    said = answer("""
import json, pystrobe
from pystrobe import gpu
def schedule(step):
    if step == 2:
        profiler.stop()
    return gpu.schedule(wait=0, warmup=0, active=1)(step)
profiler = pystrobe.Profiler(schedule=schedule)
profiler.start()
work(1)
profiler.step()
try:
    profiler.step()
except pystrobe.Error as error:
    refused = str(error)
work(1)
profiler.stop()
print(json.dumps([refused, profiler.profile.quality.complete]))
""")
    refused, complete = said
    assert "being started, stopped or stepped" in refused
    assert complete


HANDLED = """
import json, signal, threading, time, pystrobe
profilers = [pystrobe.Profiler(mode="cpu"), pystrobe.Profiler(mode="wall")]
with profilers[0]:
    pass  # which imports what is imported once: no handler may do so in the middle of that
def quietly(act):
    try:
        act()
        return ""
    except pystrobe.Error as error:
        return str(error)
def for_seconds(seconds, exceptions=()):
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for act in (profilers[0].start, profilers[0].stop):
            try:
                quietly(act)
            except exceptions:
                pass
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    quietly(profilers[0].stop), quietly(profilers[1].stop)
"""
AFTER = """
def whole():
    with pystrobe.Profiler() as last:
        work(1)
    found.append(last.profile.quality.taken)
found = []
other = threading.Thread(target=whole)
other.start()
other.join(20)
whole()
print(json.dumps([told, found]))
"""


def test_a_signal_handler_may_start_and_stop_at_any_moment() -> None:
    """Or is refused, since that is what it interrupted."""
    said = answer(
        HANDLED
        + """
told = []
def handler(number, frame):
    profiler = profilers[len(told) % 2]
    told.extend((quietly(profiler.start), quietly(profiler.stop)))
for_seconds(3)
told = ["" if not text else "below" if "below this call" in text else "runs" for text in told]
"""
        + AFTER
    )
    told, taken = said
    assert told.count("") > 10, told
    assert told.count("below") > 10, told
    assert len(taken) == 2
    assert min(taken) > 10


def test_a_signal_handler_may_raise_at_any_moment() -> None:
    """Afterwards a profiler runs in any thread."""
    said = answer(
        HANDLED
        + """
told = 0
class Raised(BaseException):
    pass
def handler(number, frame):
    global told
    if "pystrobe" in frame.f_code.co_filename:
        told += 1
        raise Raised
for_seconds(3, Raised)
"""
        + AFTER
    )
    told, taken = said
    assert told > 10
    assert len(taken) == 2
    assert min(taken) > 10
