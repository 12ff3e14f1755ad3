# SPDX-License-Identifier: Apache-2.0
"""Ranges that libraries name by NVTX, here the package `nvtx`: heard without a GPU, and joined to
the work of the mock of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from on_mock_gpu import HERE, MOCK, run, start
from own_interpreters import THIS

pytestmark = pytest.mark.beside_others

PREAMBLE = """
import os, subprocess, threading, warnings
import nvtx
import heard_ranges as heard
from pystrobe import _core
from pystrobe.gpu._trace import begin_or_warn

def say(what):
    print(json.dumps(what))
"""

# Calls of the package in every manner that it has.
RANGES = """
@nvtx.annotate("decorated", domain="library")
def function():
    with nvtx.annotate("inside", domain="library"):
        pass

def use():
    with nvtx.annotate("step"):
        function()
        nvtx.push_range("pushed", domain="library")
        with gpu.range("own"):
            pass
        nvtx.pop_range(domain="library")
        unusual = nvtx.annotate("H\\u00f6he \\u20ac \\U0001f600")
        with unusual:
            pass
    started = nvtx.start_range("started", domain="library")
    with nvtx.annotate("within"):
        pass
    thread = threading.Thread(target=lambda: nvtx.end_range(started))
    thread.start()
    thread.join()
"""

FOUND = {
    "step": 3,
    "step/library:decorated": 3,
    "step/library:decorated/library:inside": 3,
    "step/library:pushed": 3,
    "step/library:pushed/pystrobe:own": 3,
    "step/H\u00f6he \u20ac \U0001f600": 3,
    "library:started": 3,
    "library:started/within": 3,
}


def heard(program: str, **options: Any) -> Any:
    """What ``program`` says last."""
    return json.loads(run(PREAMBLE + RANGES + program, **options).splitlines()[-1])


def test_ranges_of_a_library_are_heard_without_a_gpu() -> None:
    found, threads = heard(
        """
use()
trace = heard.begin(timeline=True)
for _ in range(3):
    use()
work = trace.stop()
use()
tids = {tid for _, tid in heard.spans(work)}
say([heard.counts(work), [len(heard.spans(work)), len(tids), tids == {threading.get_native_id()}]])
""",
        driver=False,
    )
    assert found == FOUND
    assert threads == [24, 1, True], "of the threads that began them"


def test_each_thread_has_its_own() -> None:
    found, spans = heard(
        """
def work(name):
    with nvtx.annotate(name):
        for _ in range(100):
            with nvtx.annotate("inside"):
                pass

trace = heard.begin(timeline=True)
with nvtx.annotate("main"):
    threads = [threading.Thread(target=work, args=(f"thread {i}",)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
work = trace.stop()
say([heard.counts(work), len({tid for _, tid in heard.spans(work)})])
""",
        driver=False,
    )
    each = {f"thread {i}": 1 for i in range(4)}
    inside = {f"{path}/inside": 100 for path in each}
    assert found == {"main": 1, **each, **inside}
    assert spans == 5


def test_a_profiler_without_a_gpu_hears_ranges_all_the_same() -> None:
    warned, found, again, of_others = heard(
        """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trace = pystrobe.Profiler(gpu=True, schedule=gpu.schedule(wait=0, warmup=1, active=1))
    trace.start()
    second, _ = begin_or_warn(timeline=False)
nvtx.push_range("before")
use()
trace.step()
for _ in range(3):
    use()
time.sleep(0.02)
nvtx.pop_range()
work = trace.stop()
with warnings.catch_warnings(record=True):
    with pystrobe.Profiler(gpu=True) as profiler:
        use()
    with pystrobe.Tracer(gpu=True) as tracer:
        use()
step = "before/pystrobe:ProfilerStep"
own = {path.removeprefix(step + "/"): n for path, n in heard.counts(work).items()}
assert heard.host_ns(work)["before"] > 20_000_000
of_others = [heard.counts(profiler.profile), heard.counts(tracer.profile())]
say([[str(w.message)[:27] for w in caught], own, [second is None, profiler.profile.gpu is None],
     of_others])
""",
        driver=False,
    )
    assert warned == ["the GPU is not profiled: th"] * 2
    assert found == {"before": 1, "before/pystrobe:ProfilerStep": 1, **FOUND}
    assert again == [True, True]
    assert of_others == [dict.fromkeys(FOUND, 1)] * 2


def test_what_is_launched_in_a_range_is_its_own_and_that_of_all_around_it() -> None:
    found, counts = heard(
        """
t.begin()
trace = pystrobe.Profiler(mode="gpu")
trace.start()
for _ in range(3):
    with nvtx.annotate("step"):
        t.launch(5)
        with nvtx.annotate("forward", domain="library"):
            t.launch(5)
            t.launch(20)
        with nvtx.annotate("empty"):
            pass
        with gpu.range("own"):
            t.launch(10)
t.launch(100)
with nvtx.annotate("later"):
    t.launch(1)
work = trace.stop()
say([heard.on_devices(work), heard.counts(work)])
"""
    )
    busy = {path: [one[0], one[1], one[3]] for path, one in found.items()}
    assert busy == {
        "step": [3, 12, 120_000],
        "step/library:forward": [3, 6, 75_000],
        "step/pystrobe:own": [3, 3, 30_000],
        "later": [1, 1, 1_000],
    }
    assert all(span >= busy for _, _, span, busy in found.values())
    assert found["step/pystrobe:own"][2] == 30_000, "of one kernel each"
    assert counts["step/empty"] == 3


def test_what_autograds_threads_launch_is_of_the_range_that_waits_for_them() -> None:
    found = heard(
        """
t.begin()
def backward():
    path = _core.gpu_enter_backward()
    t.launch_without_frames(4)
    _core.gpu_leave_backward(path)
trace = pystrobe.Profiler(mode="gpu")
trace.start()
with nvtx.annotate("backward"):
    (lambda: backward())()
t.launch_without_frames(2)
work = trace.stop()
say(heard.on_devices(work))
"""
    )
    assert {path: one[:2] for path, one in found.items()} == {"backward": [1, 4]}


def test_a_restart_forgets_what_was_launched_before() -> None:
    found = heard(
        """
t.begin()
trace = pystrobe.Profiler(mode="gpu", schedule=gpu.schedule(wait=0, warmup=1, active=1))
trace.start()
with nvtx.annotate("outer"):
    with nvtx.annotate("before"):
        t.launch(5)
    trace.step()
    with nvtx.annotate("after"):
        t.launch(5)
say(heard.on_devices(trace.stop()))
"""
    )
    assert {path: one[:2] for path, one in found.items()} == {
        "outer": [1, 1],
        "outer/pystrobe:ProfilerStep": [1, 1],
        "outer/pystrobe:ProfilerStep/after": [1, 1],
    }


def test_another_tool_keeps_them() -> None:
    said, told = start(
        "import os; print(gpu.why_no_ranges(), os.environ['NVTX_INJECTION64_PATH'])",
        False,
        {"NVTX_INJECTION64_PATH": str(MOCK / "libnvtx_listener.so")},
    )
    listener = str(MOCK / "libnvtx_listener.so")
    assert said == (f"NVTX_INJECTION64_PATH names another tool: {listener} {listener}")
    assert told == ""
    assert run("print(gpu.why_no_ranges())", driver=False) == "None"


# NVTX has looked for a tool by then.
def test_a_library_that_used_nvtx_before_is_not_heard() -> None:
    program = """
import nvtx
nvtx.push_range("early")
import heard_ranges
trace = heard_ranges.begin()
with nvtx.annotate("late"):
    pass
print(heard_ranges.counts(trace.stop()))
"""
    environment = {**THIS.environment(), "PYTHONPATH": str(HERE)}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert ended.stdout.strip() == "{}", ended.stderr


CHILD = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
path = libc.getenv(b"NVTX_INJECTION64_PATH").decode()
import nvtx
for _ in range(1000):
    with nvtx.annotate("in the child", domain="library"):
        pass
nvtx.end_range(nvtx.start_range("started"))
print(os.path.basename(path).split(".")[0], "pystrobe" in sys.modules)
"""


def test_a_child_that_inherits_the_variable_is_unharmed() -> None:
    """What it loads says that it has no use of it."""
    said = heard(
        f"""
child = subprocess.run([sys.executable, "-c", {CHILD!r}], capture_output=True, text=True)
say([child.returncode, child.stdout, child.stderr, "NVTX_INJECTION64_PATH" in os.environ])
""",
        driver=False,
    )
    assert said == [0, "_core False\n", "", False]


def test_a_child_that_imports_pystrobe_hears_its_own() -> None:
    counts = """
trace = heard.begin()
use()
print(len(heard.counts(trace.stop())))
"""
    child = "import json\nfrom pystrobe import gpu\n" + PREAMBLE + RANGES + counts
    said = heard(
        f"""
child = subprocess.run([sys.executable, "-c", {child!r}], capture_output=True, text=True)
say([child.stdout, child.stderr])
""",
        driver=False,
    )
    assert said == [f"{len(FOUND)}\n", ""]


def test_the_variable_is_set_for_a_script_before_it_begins() -> None:
    program = (
        "import ctypes; libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p;"
        "print(libc.getenv(b'NVTX_INJECTION64_PATH'))"
    )
    for settings in ("gpu=1", "mode=trace,gpu=1"):
        ended = subprocess.run(
            [sys.executable, "-c", "import pystrobe.auto; exec(" + repr(program) + ")"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYSTROBE_ENABLE": settings},
        )
        assert "_core." in ended.stdout, ended.stderr
