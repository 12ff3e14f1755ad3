# SPDX-License-Identifier: Apache-2.0
"""A program that samples itself is as it was."""

from __future__ import annotations

import pytest
from own_interpreters import THIS, Own
from own_program import MODES, answer, run

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")


@MODES
@pytest.mark.parametrize("rounds", [300, pytest.param(1000, marks=pytest.mark.matrix)])
def test_the_program_is_as_it_was(own: Own, mode: str, rounds: int) -> None:
    """Threads, descriptors, signals, affinity, priority: hundreds of times."""
    said = answer(
        f"ROUNDS = {rounds if own is THIS else 50}"
        """
import json, os, signal, pystrobe
def state():
    return {"threads": tasks(),
            "fds": len(os.listdir("/proc/self/fd")),
            "signals": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
            "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "cpus": sorted(os.sched_getaffinity(0)), "policy": os.sched_getscheduler(0),
            "nice": os.nice(0)}
with pystrobe.Profiler(mode=MODE): pass
before = state()
for _ in range(ROUNDS):
    with pystrobe.Profiler(mode=MODE, rate=2000):
        pass
print(json.dumps({"before": before, "after": state()}))
""",
        mode,
        own,
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


@MODES
def test_a_child_of_fork_starts_clean(own: Own, mode: str) -> None:
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
os.close(writing)  # should it end without a word, nobody waits for one
work(2)
child = json.loads(os.read(reading, 1000))
os.wait()
print(json.dumps({"child": child, "taken": pystrobe.disable().quality.taken}))
""",
        mode,
        own,
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


def test_a_timer_of_the_program_goes_on_where_sampling_has_ended() -> None:
    """While it lasted its signals could not be told from ours."""
    said = answer("""
import ctypes, json, signal, pystrobe
got = 0
def handler(*_):
    global got
    got += 1
signal.signal(signal.SIGURG, handler)
libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
event = (ctypes.c_int * 16)(0, 0, signal.SIGURG, 0)
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
every = (ctypes.c_long * 4)(0, 5_000_000, 0, 5_000_000)
assert libc.timer_settime(timer, 0, every, None) == 0
def count():
    global got
    got = 0
    spin(0.3)
    return got
counts = [count()]
with pystrobe.Profiler(mode="cpu"):
    counts.append(count())
counts.append(count())
print(json.dumps(counts))
""")
    before, meanwhile, after = said
    assert before > 20
    assert meanwhile < before / 2
    assert after > before / 2


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
