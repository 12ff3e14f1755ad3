# SPDX-License-Identifier: Apache-2.0
"""Sampling this process from inside: what it says, and that the program is as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")

WORK = """
import time

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def burn50(): spin(0.050)
def burn30(): spin(0.030)
def burn20(): spin(0.020)
def nap(): time.sleep(0.050)

def work(rounds):
    wall = dict.fromkeys(("burn50", "burn30", "burn20", "nap"), 0.0)
    for _ in range(rounds):
        for function in (burn50, burn30, burn20, nap):
            begin = time.perf_counter()
            function()
            wall[function.__name__] += time.perf_counter() - begin
    return wall
"""


MODES = pytest.mark.parametrize("mode", ["cpu", "wall"])


def run(code: str, mode: str = "", **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a program that has WORK, and MODE."""
    return subprocess.run(
        [sys.executable, "-c", f"MODE = {mode!r}\n{WORK}{code}"],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )  # type: ignore[call-overload]


def answer(code: str, mode: str = "") -> dict[str, Any]:
    """What the program prints as JSON on its last line."""
    finished = run(code, mode)
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout.splitlines()[-1])
    assert isinstance(result, dict)
    return result


def test_wall_time_goes_to_where_it_was_spent() -> None:
    said = answer("""
import json, os, pystrobe
with pystrobe.Profiler(mode="wall", rate=1000) as profiler:
    before = time.process_time()
    wall = work(20)
    used = time.process_time() - before
profile = profiler.profile
report = profile.report(include_idle=True)
told = {f.name: f.total.wall_ns / 1e9 for f in report.functions if f.name in wall}
quality = profile.quality
print(json.dumps({"wall": wall, "told": told, "used": used, "cpu": report.total.cpu_ns / 1e9,
    "nap_cpu": next(f.total.cpu_ns for f in report.functions if f.name == "nap") / 1e9,
    "taken": quality.taken, "proved": quality.proved, "own": quality.own_cpu_ns / 1e9,
    "mode": quality.pause_mode, "pid": profile.metadata.pid == os.getpid()}))
""")
    assert said["pid"]
    assert said["mode"] == "preempt"
    assert said["taken"] > 1500
    assert said["proved"] == said["taken"]
    for name, seconds in said["wall"].items():
        assert said["told"][name] == pytest.approx(seconds, abs=0.1), name
    # The process' clock counts the sampler's threads too; the recording does not.
    assert 0 < said["own"] < 0.5
    assert said["cpu"] == pytest.approx(said["used"] - said["own"], abs=0.1)
    assert said["nap_cpu"] < 0.05


def test_cpu_time_goes_to_where_it_was_spent() -> None:
    """Of four threads at once, each with its own shares."""
    said = answer("""
import json, os, threading, pystrobe
truth = dict.fromkeys(("burn50", "burn30", "burn20", "nap"), 0.0)
lock = threading.Lock()

def worker(order):
    for _ in range(6):
        for function in order:
            begin = time.thread_time()
            function()
            with lock:
                truth[function.__name__] += time.thread_time() - begin

orders = [(burn50, burn30, burn20, nap), (burn30, nap, burn50, burn20),
          (nap, burn20, burn30, burn50), (burn20, burn50, nap, burn30)]
threads = [threading.Thread(target=worker, args=(order,), name="worker") for order in orders]
with pystrobe.Profiler(mode="cpu", rate=2000) as profiler:
    before = time.process_time()
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    used = time.process_time() - before
profile = profiler.profile
report = profile.report()
quality = profile.quality
print(json.dumps({"truth": truth, "used": used, "mode": quality.pause_mode,
    "told": {f.name: f.total.cpu_ns / 1e9 for f in report.functions if f.name in truth},
    "cpu": report.total.cpu_ns / 1e9, "wall": report.total.wall_ns, "own": quality.own_cpu_ns / 1e9,
    "held": quality.held_ns / 1e9, "taken": quality.taken, "proved": quality.proved,
    "threads": [t.name for t in report.threads], "report_mode": report.mode}))
""")
    assert said["mode"] == "signal"
    assert said["report_mode"] == "cpu"
    assert said["wall"] == 0
    assert said["proved"] == said["taken"] > 3000
    all_true, all_told = sum(said["truth"].values()), sum(said["told"].values())
    for name in ("burn50", "burn30", "burn20"):
        share = 100 * said["told"][name] / all_told
        assert share == pytest.approx(100 * said["truth"][name] / all_true, abs=1), name
    assert said["told"].get("nap", 0) < 0.01 * all_told
    # The process' clock counts the sampler's thread too.
    own_thread = said["own"] - said["held"]
    assert said["cpu"] == pytest.approx(said["used"] - own_thread, rel=0.01)
    assert said["threads"].count("worker") == 4


@MODES
def test_every_thread_is_seen_whoever_enables(mode: str) -> None:
    said = answer(
        """
import json, threading, pystrobe
def helper():
    pystrobe.enable(mode=MODE, rate=500)
    work(5)
waiting = threading.Event()
threading.Thread(target=waiting.wait, name="waiter").start()
thread = threading.Thread(target=helper, name="helper")
thread.start()
thread.join()
profile = pystrobe.disable()
waiting.set()
report = profile.report(include_idle=True)
print(json.dumps({"threads": [t.name for t in report.threads],
    "stacks": [[f.function for f in s.frames] for s in profile.stacks() if s.thread == "helper"]}))
""",
        mode,
    )
    # Who only waits uses no CPU time.
    assert set(said["threads"]) >= (
        {"MainThread", "helper", "waiter"} if mode == "wall" else {"helper"}
    )
    # Before it is armed it has used some time without a stack.
    assert any(stack[-1:] == ["spin"] and "burn50" in stack for stack in said["stacks"])


@MODES
def test_the_program_is_as_it_was(mode: str) -> None:
    """Threads, descriptors, signals, affinity, priority: a thousand times."""
    said = answer(
        """
import json, os, signal, pystrobe
def state():
    return {"threads": len(os.listdir("/proc/self/task")),
            "fds": len(os.listdir("/proc/self/fd")),
            "signals": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
            "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "cpus": sorted(os.sched_getaffinity(0)), "policy": os.sched_getscheduler(0),
            "nice": os.nice(0)}
with pystrobe.Profiler(mode=MODE): pass
before = state()
for _ in range(1000):
    with pystrobe.Profiler(mode=MODE, rate=2000):
        pass
print(json.dumps({"before": before, "after": state()}))
""",
        mode,
    )
    assert said["before"] == said["after"]


def test_no_system_call_is_interrupted() -> None:
    said = answer("""
import json, ctypes, threading, pystrobe
libc = ctypes.CDLL(None, use_errno=True)
interrupted = 0
def sleep():
    global interrupted
    for _ in range(300):
        interrupted += libc.usleep(2000) != 0
with pystrobe.Profiler(mode="wall", rate=5000):
    thread = threading.Thread(target=sleep)
    thread.start()
    work(3)
    thread.join()
print(json.dumps({"interrupted": interrupted}))
""")
    assert said["interrupted"] == 0


def test_c_functions_have_their_time() -> None:
    found = answer(
        """
import json, zlib, pystrobe
DATA = bytes(range(256)) * 4000

def shrink():
    for _ in range(40):
        zlib.compress(DATA, 6)

def count():
    total = 0
    for i in range(4_000_000):
        total += i

with pystrobe.Profiler(native=True) as profiler:
    shrink()
    count()
profile = profiler.profile
total = {f.name: f.total.cpu_ns for f in profile.top(1000)}
print(json.dumps({
    "total": total,
    "own": {f.name: f.self.cpu_ns for f in profile.top(1000)},
    "native": [f.name for f in profile.top(1000) if f.native],
    "unfit": profile.quality.native_unfit,
    "cut": profile.quality.native_cut / profile.quality.taken,
}))
"""
    )
    assert found["unfit"] == 0
    assert found["cut"] < 0.02
    assert "deflate" in found["native"]
    assert not {"shrink", "count", "<module>"} & set(found["native"])
    # What zlib.compress does it does in C; what the loop does it does in Python.
    assert found["total"]["deflate"] > 0.9 * found["total"]["shrink"]
    assert found["own"]["count"] >= 0.98 * found["total"]["count"]
    assert found["own"]["shrink"] < 0.1 * found["total"]["shrink"]


def test_one_at_a_time() -> None:
    with pystrobe.Profiler(), pytest.raises(pystrobe.Error, match="runs in this process already"):
        pystrobe.enable()
    with pytest.raises(pystrobe.Error, match="no profiler runs"):
        pystrobe.disable()
    profiler = pystrobe.Profiler()
    with pytest.raises(pystrobe.Error, match="no profile yet"):
        profiler.profile  # noqa: B018
    with pytest.raises(pystrobe.Error, match="does not run"):
        profiler.stop()


def test_only_the_thread_that_starts_it() -> None:
    said = answer(
        """
import json, threading, pystrobe
other = threading.Thread(target=work, args=(10,))
def sampled():
    global used
    with pystrobe.Profiler(threads="current") as profiler:
        begin = time.thread_time()
        other.start()
        work(5)
        used = time.thread_time() - begin
    return profiler.profile
profiles = []
own = threading.Thread(target=lambda: profiles.append(sampled()), name="own")
own.start(); own.join(); other.join()
report = profiles[0].report()
print(json.dumps({
    "threads": [thread.name for thread in report.threads],
    "cpu": report.total.cpu_ns / 1e9, "used": used, "unseen": report.unseen.cpu_ns / 1e9}))
"""
    )
    assert said["threads"] == ["own"]
    assert said["cpu"] == pytest.approx(said["used"], abs=0.02)
    assert said["unseen"] < 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "walll"}, "one of cpu, wall"),
        ({"max_overhead": 0.01, "mode": "cpu"}, "give a lower rate"),
        ({"native": True, "mode": "wall"}, "it is for mode='cpu'"),
        ({"threads": "both"}, "one of all, current"),
        ({"threads": "current", "mode": "wall"}, "it is for mode='cpu'"),
        ({"rate": 0}, "above 0"),
        ({"rate": "fast"}, "above 0"),
        ({"rate": -1}, "above 0"),
        ({"rate": float("nan")}, "above 0"),
        ({"rate": 2e6}, "1,000,000 at most"),
        ({"max_overhead": 0, "mode": "wall"}, "share of the time"),
        ({"max_overhead": 1.5, "mode": "wall"}, "share of the time"),
    ],
)
def test_wrong_arguments_start_nothing(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(pystrobe.InvalidArgumentError, match=message):
        pystrobe.Profiler(**arguments)
    with pytest.raises(ValueError, match=message):
        pystrobe.enable(**arguments)


@MODES
def test_a_child_of_fork_starts_clean(mode: str) -> None:
    said = answer(
        """
import json, os, pystrobe
pystrobe.enable(mode=MODE)
work(1)
reading, writing = os.pipe()
if os.fork() == 0:
    threads = len(os.listdir("/proc/self/task"))
    with pystrobe.Profiler(mode=MODE) as own:
        work(2)
    taken = own.profile.quality.taken
    os.write(writing, json.dumps({"threads": threads, "taken": taken}).encode())
    os._exit(0)
work(2)
child = json.loads(os.read(reading, 1000))
os.wait()
print(json.dumps({"child": child, "taken": pystrobe.disable().quality.taken}))
""",
        mode,
    )
    assert said["child"]["threads"] == 1
    assert said["child"]["taken"] > 20
    assert said["taken"] > 40


DAEMON = "import threading; threading.Thread(target=work, args=(10**9,), daemon=True).start()"
ENDINGS = {
    "falls off": ("", 0),
    "exits": ("raise SystemExit(3)", 3),
    "at once": ("import os; os._exit(3)", 3),
    "beside a daemon thread": (f"{DAEMON}\nwork(1)\nraise SystemExit(3)", 3),
    "becomes another": (
        "import os, sys; os.execv(sys.executable, "
        "[sys.executable, '-c', 'for _ in range(10**6): pass\\nraise SystemExit(3)'])",
        3,
    ),
}


@MODES
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_may_end_while_it_is_sampled(mode: str, ending: str) -> None:
    code, status = ENDINGS[ending]
    finished = run(f"import pystrobe\npystrobe.enable(mode=MODE)\nwork(1)\n{code}\n", mode)
    assert finished.returncode == status
    assert finished.stderr == ""


@MODES
def test_an_exception_leaves_the_profile(mode: str) -> None:
    profiler = pystrobe.Profiler(mode=mode, rate=1000)

    def fail() -> None:
        with profiler:
            for _ in range(10**6):
                pass
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert profiler.profile.quality.complete


def test_a_function_is_profiled_by_a_decorator(tmp_path: Path) -> None:
    page = tmp_path / "work.html"
    finished = run(f"""
import pystrobe

@pystrobe.profile
def printed(n):
    work(n)
    return printed(0) if n else "returned"

@pystrobe.profile(output={str(page)!r}, rate=500)
def saved():
    work(1)

print(printed(1))
saved()
""")
    assert finished.returncode == 0, finished.stderr
    assert "returned" in finished.stdout
    assert finished.stdout.count("Quality: ") == 1
    assert "burn50" in finished.stdout
    assert page.read_text().startswith("<!")


def test_a_profile_is_saved_in_every_format(tmp_path: Path) -> None:
    with pystrobe.Profiler(rate=1000) as profiler:
        sum(i * i for i in range(3 * 10**6))
    profile = profiler.profile
    with pytest.raises(pystrobe.InvalidArgumentError, match="no wall time"):
        profile.print(mode="wall")
    names = ["a.strobe", "a.html", "a.speedscope.json", "a.pb.gz", "a.collapsed", "a.json"]
    for name in names:
        path = tmp_path / name
        path.write_text("old")
        profile.save(path)
        assert path.stat().st_size > 100
    assert sorted(os.listdir(tmp_path)) == sorted(names), "nothing else is left"
    report = pystrobe.read(tmp_path / "a.strobe")
    assert report.quality == profile.quality
    assert json.loads((tmp_path / "a.json").read_text())["quality"]["taken"] == report.quality.taken
    assert "<genexpr>" in (tmp_path / "a.collapsed").read_text()
    assert str(profile).startswith(os.path.basename(sys.executable))
    assert profile.top(1)[0].name.endswith("<genexpr>")
    with pytest.raises(pystrobe.InvalidArgumentError, match="strobe, html"):
        profile.save(tmp_path / "a.xyz")
    with pytest.raises(OSError, match="No such file or directory"):
        profile.save(tmp_path / "none" / "a.html")
    with pytest.raises(pystrobe.Error, match=r"/dev/full: .*No space left"):
        profile.save("/dev/full", format="html")
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_the_timer_of_the_program_goes_on() -> None:
    """SIGPROF is the program's, before, while, and after."""
    said = answer("""
import json, signal, pystrobe
count = 0
def count_signals(number, frame):
    global count
    count += 1
signal.signal(signal.SIGPROF, count_signals)
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
counts = []
def burn(seconds):
    before = count
    spin(seconds)
    counts.append(count - before)
burn(0.5)
with pystrobe.Profiler(mode="cpu", rate=1000) as profiler:
    burn(0.5)
burn(0.5)
same = signal.getsignal(signal.SIGPROF) is count_signals
signal.setitimer(signal.ITIMER_PROF, 0)
print(json.dumps({"counts": counts, "same": same, "taken": profiler.profile.quality.taken}))
""")
    assert said["same"]
    # Timers of CPU time fire on the scheduler's ticks.
    assert all(20 < count < 60 for count in said["counts"]), said
    assert said["taken"] > 400


def test_a_handler_that_takes_the_signal_keeps_it() -> None:
    said = answer("""
import json, signal, pystrobe
got = []
with pystrobe.Profiler(mode="cpu", rate=1000) as profiler:
    spin(0.2)
    signal.signal(signal.SIGURG, lambda *_: got.append(1))
    spin(0.2)
    mine = signal.getsignal(signal.SIGURG)
kept = signal.getsignal(signal.SIGURG) is mine
spin(0.1)
print(json.dumps({"got": len(got), "kept": kept, "taken": profiler.profile.quality.taken}))
""")
    assert said["kept"]
    assert said["got"] > 50
    assert 100 < said["taken"] < 300


def test_a_signal_of_the_program_comes_to_its_handler() -> None:
    said = answer("""
import json, os, signal, pystrobe
got = []
handler = lambda *_: got.append(1)
signal.signal(signal.SIGURG, handler)
with pystrobe.Profiler(mode="cpu", rate=1000) as profiler:
    for _ in range(10):
        spin(0.02)
        os.kill(os.getpid(), signal.SIGURG)
spin(0.1)
same = signal.getsignal(signal.SIGURG) is handler
print(json.dumps({"got": len(got), "same": same, "taken": profiler.profile.quality.taken}))
""")
    assert said["got"] == 10
    assert said["same"]
    assert said["taken"] > 150


def test_a_thread_that_blocks_the_signal_survives_the_end() -> None:
    said = answer("""
import json, signal, threading, pystrobe
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
for _ in range(3):
    with pystrobe.Profiler(mode="cpu", rate=1000) as profiler:
        spin(0.1)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
with pystrobe.Profiler(mode="cpu", rate=1000) as again:
    spin(0.2)
quality = again.profile.quality
print(json.dumps({"blocked": profiler.profile.quality.taken, "taken": quality.taken}))
""")
    assert said["blocked"] == 0
    assert said["taken"] > 100


def test_limits_leave_some_threads_out() -> None:
    said = answer("""
import json, os, resource, threading, pystrobe
threads = [threading.Thread(target=work, args=(3,)) for _ in range(12)]
free = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (free + 10, free + 10))
with pystrobe.Profiler(mode="cpu", rate=1000) as profiler:
    for thread in threads: thread.start()
    for thread in threads: thread.join()
report = profiler.profile.report()
print(json.dumps({"cpu": report.total.cpu_ns, "threads": [t.name for t in report.threads],
    "line": str(profiler.profile)}))
""")
    assert "threads not sampled" in said["threads"]
    assert said["cpu"] > 2e9


def test_a_rate_beyond_reason_leaves_the_program_running() -> None:
    said = answer("""
import json, pystrobe
begin = time.perf_counter()
with pystrobe.Profiler(mode="cpu", rate=1e6) as profiler:
    work(3)
print(json.dumps({"took": time.perf_counter() - begin, "taken": profiler.profile.quality.taken,
    "rate": profiler.profile.quality.achieved_rate_hz}))
""")
    assert said["taken"] > 1000
    assert said["rate"] < 1e5


def test_forks_at_any_moment_leave_the_child_whole() -> None:
    said = answer("""
import json, os, threading, pystrobe
with pystrobe.Profiler(): pass  # imports, whose locks no child gets back
ended = False
def switch():
    while not ended:
        with pystrobe.Profiler(mode="cpu", rate=1000): pass
thread = threading.Thread(target=switch)
thread.start()
statuses = []
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        with pystrobe.Profiler(mode="cpu", rate=1000) as own:
            spin(0.02)
        os._exit(0 if own.profile.quality.taken > 5 else 1)
    statuses.append(os.waitpid(pid, 0)[1])
    time.sleep(0.003)
ended = True
thread.join()
print(json.dumps({"statuses": statuses}))
""")
    assert set(said["statuses"]) == {0}, said
