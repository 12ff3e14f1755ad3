# SPDX-License-Identifier: Apache-2.0
"""What a program that samples itself by CPU time says where the kernel gives it less."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from own_interpreters import Own
from own_program import answer, run
from sandbox import forbid_perf_events

pytest.importorskip("pystrobe", reason="the package is not installed: make build")

# What sends the signals may not count time in the kernel.
UNPRIVILEGED = Own(
    "without privileges", (), ("setpriv", "--bounding-set", "-sys_admin,-perfmon", sys.executable)
)


@pytest.mark.chance
def test_a_timer_sends_the_signals_where_perf_events_are_forbidden() -> None:
    said = answer(
        """
import json, pystrobe
truth = dict.fromkeys(("burn50", "burn30", "burn20"), 0.0)
with pystrobe.Profiler(rate=1000) as profiler:
    before = time.process_time()
    for _ in range(12):
        for function in (burn50, burn30, burn20):
            begin = time.thread_time()
            function()
            truth[function.__name__] += time.thread_time() - begin
    used = time.process_time() - before
report = profiler.profile.report()
quality = profiler.profile.quality
tick = time.clock_getres(6)  # CLOCK_MONOTONIC_COARSE
line = " ".join(str(profiler.profile).split())
print(json.dumps({"source": quality.cpu_source, "line": line, "tick": tick,
    "rates": [quality.achieved_rate_hz, quality.final_rate_hz], "used": used, "truth": truth,
    "cpu": report.total.cpu_ns / 1e9, "own": (quality.own_cpu_ns - quality.held_ns) / 1e9,
    "unseen": report.unseen.cpu_ns / 1e9, "proved": quality.proved, "taken": quality.taken,
    "told": {f.name: f.total.cpu_ns / 1e9 for f in report.functions if f.name in truth}}))
""",
        preexec_fn=forbid_perf_events,
    )
    assert said["source"] == "CPU timer"
    assert " by CPU timer" in said["line"]
    achieved, final = said["rates"]
    assert final == pytest.approx(min(1000, 1 / said["tick"]), rel=0.01)
    assert ("no more can be had" in said["line"]) == (final < 995)
    assert 0.4 * final < achieved < 1.1 * final
    assert said["proved"] == said["taken"] > 50
    assert said["cpu"] == pytest.approx(said["used"] - said["own"], rel=0.02)
    assert said["unseen"] < 0.02 * said["cpu"]
    for name, seconds in said["truth"].items():
        assert said["told"][name] == pytest.approx(seconds, abs=0.06 * said["used"]), name


MANY = '''
import json, resource, threading, pystrobe
ended = threading.Event()
ready = threading.Barrier(13)
def worker():
    spin(0.02)
    ready.wait()
    ended.wait()
def queued():
    """Of all processes of this user."""
    return int(open("/proc/self/status").read().split("SigQ:")[1].split("/")[0])
def limit(most):
    hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (most, hard))
def threads():
    global used
    before = time.process_time()
    threads = [threading.Thread(target=worker, name="worker") for _ in range(12)]
    for thread in threads: thread.start()
    ready.wait()
    # New threads are looked for so often.
    time.sleep(0.1)
    ended.set()
    for thread in threads: thread.join()
    used = time.process_time() - before
def told(profile):
    report = profile.report(include_idle=True)
    print(json.dumps({"source": profile.quality.cpu_source,
        "line": " ".join(str(profile).split()), "threads": [t.name for t in report.threads],
        "cpu": report.total.cpu_ns / 1e9, "used": used}))
'''


def test_a_limit_of_pending_signals_leaves_some_threads_out() -> None:
    said = answer(
        MANY
        + """
limit(queued() + 5)
with pystrobe.Profiler() as profiler:
    threads()
told(profiler.profile)
""",
        preexec_fn=forbid_perf_events,
    )
    found = re.search(
        r"^CPU timer; (\d+) threads without samples: .* \(see `ulimit -i`\)$", said["source"]
    )
    assert found, said["source"]
    sampled = [name for name in said["threads"] if name in ("worker", "MainThread")]
    assert "MainThread" in sampled
    assert len(sampled) + int(found[1]) == 13
    assert "threads not sampled" in said["threads"], "their CPU time is in no other's"
    assert said["cpu"] == pytest.approx(said["used"], abs=0.05)
    assert f"{found[1]} threads without samples" in said["line"]


def test_a_program_of_which_no_thread_can_be_sampled_is_told_why() -> None:
    finished = run(
        MANY + "limit(0)\npystrobe.enable()",
        preexec_fn=forbid_perf_events,
    )
    assert finished.returncode == 1
    assert "see `ulimit -i`" in finished.stderr
    assert "Each thread that is sampled takes a pending signal." in finished.stderr


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, and setpriv"
)
def test_threads_that_lack_the_timer_beside_their_event_are_told() -> None:
    said = answer(
        MANY
        + """
with pystrobe.Profiler() as profiler:
    limit(0)
    threads()
told(profiler.profile)
""",
        by=UNPRIVILEGED,
    )
    if not said["source"].startswith("perf task clock (user mode)"):
        pytest.skip(f"the source is another: {said['source']}")
    assert re.search(
        r"; 12 threads without samples of time in the kernel: .* \(see `ulimit -i`\)$",
        said["source"],
    ), said["source"]
    assert said["threads"].count("worker") == 12


def test_where_no_memory_may_be_read_any_more_stacks_are_not_called_whole() -> None:
    said = answer(
        f"""
import json, sys, pystrobe
sys.path.insert(0, {str(Path(__file__).parent)!r})
from sandbox import PROCESS_VM_READV, PROCESS_VM_WRITEV, forbid
begin = time.thread_time()
with pystrobe.Profiler(rate=1000) as profiler:
    work(1)
    forbid(PROCESS_VM_READV)
    forbid(PROCESS_VM_WRITEV)
    readable = time.thread_time() - begin
    work(3)
quality = profiler.profile.quality
print(json.dumps([quality.taken, quality.incomplete, readable]))
"""
    )
    taken, incomplete, readable = said
    assert incomplete > 50  # of about 300
    assert taken - incomplete <= 1000 * readable + 5


def test_without_memory_the_program_goes_on() -> None:
    """Whose threads are among ours: what one of them does not catch ends it."""
    done = run(
        """
import resource, warnings, pystrobe
warnings.simplefilter("ignore")
# CPython itself may crash where it has no memory: what runs takes none that was not there before.
functions = []
for i in range(400):
    space = {"functions": functions}
    exec(f"def f{i}(n): return functions[({7 * i} + n) % 400](n - 1) if n > 0 else 0", space)
    functions.append(space[f"f{i}"])
def once():
    for function in functions:
        function(60)
once()
profiler = pystrobe.Profiler(mode="wall", rate=10_000)
profiler.start()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 500_000, -1))
end = time.monotonic() + 2
while time.monotonic() < end:
    once()
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
profiler.stop()
print("taken", profiler.profile.quality.taken)
"""
    )
    assert done.returncode == 0, done.stderr
    assert "taken" in done.stdout
