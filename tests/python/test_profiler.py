# SPDX-License-Identifier: Apache-2.0
"""What sampling this process from inside says."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_program import MODES, answer, run

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")


@pytest.mark.chance
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


@pytest.mark.chance
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


@pytest.mark.chance
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
        ({"rate": 0}, "one in ten hours at least"),
        ({"rate": "fast"}, "one in ten hours at least"),
        ({"rate": -1}, "one in ten hours at least"),
        ({"rate": float("nan")}, "one in ten hours at least"),
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


def test_a_wrong_mode_is_told_all_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"one of cpu, wall, gpu, trace$"):
        pystrobe.enable(mode="typo")


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


def test_a_coroutine_is_profiled_until_it_returns() -> None:
    finished = run("""
import asyncio
import pystrobe

@pystrobe.profile
async def printed():
    for _ in range(3):
        work(1)
        await asyncio.sleep(0.01)
    return "returned"

print(asyncio.run(printed()))
""")
    assert finished.returncode == 0, finished.stderr
    assert "returned" in finished.stdout
    assert finished.stdout.count("Quality: ") == 1
    assert "burn50" in finished.stdout


def test_a_generator_is_not_decorated() -> None:
    with pytest.raises(ValueError, match="made is a generator"):

        @pystrobe.profile
        def made() -> Iterator[int]:
            yield 1


def test_one_that_starts_again_has_no_profile_until_it_stops() -> None:
    profiler = pystrobe.Profiler()
    with profiler:
        pass
    with profiler, pytest.raises(pystrobe.Error, match="there is no profile yet"):
        _ = profiler.profile


def test_a_program_that_closes_all_is_told_that_sampling_ended() -> None:
    finished = run("""
import os
import pystrobe

pystrobe.enable()
work(1)
os.closerange(3, 1000)
files = [open("/dev/null") for _ in range(20)]
work(60)
profile = pystrobe.disable()
for file in files:
    file.close()
print(profile.quality.taken)
""")
    assert finished.returncode == 0, finished.stderr
    assert "sampling ended early: writing the recording: the program has closed" in finished.stderr
    assert int(finished.stdout) > 10


def test_the_end_of_the_program_keeps_what_cannot_be_saved(tmp_path: Path) -> None:
    """The folder is gone by then."""
    finished = run(f"""
import os
import pystrobe

os.mkdir({str(tmp_path / "folder")!r})
pystrobe.enable(output={str(tmp_path / "folder" / "work.html")!r})
work(1)
os.rmdir({str(tmp_path / "folder")!r})
""")
    assert finished.returncode == 0, finished.stderr
    assert "Traceback" not in finished.stderr
    kept = re.search(r"nothing recorded is lost: it is in (\S+)", finished.stderr)
    assert kept is not None, finished.stderr
    assert pystrobe.read(kept[1]).quality.taken > 10
    os.unlink(kept[1])


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    finished = run(f"""
import os
import pystrobe

os.mkdir({str(tmp_path / "folder")!r})
os.chdir({str(tmp_path / "folder")!r})
os.rmdir({str(tmp_path / "folder")!r})
try:
    pystrobe.enable(output="work.html")
except ValueError as error:
    print(error)
""")
    assert "'work.html' would be in a folder that is gone" in finished.stdout, finished.stderr


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
    with pytest.raises(pystrobe.InvalidArgumentError, match="there is no folder"):
        profile.save(tmp_path / "none" / "a.html")
    with pytest.raises(pystrobe.Error, match=r"/dev/full: .*No space left"):
        profile.save("/dev/full", format="html")
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_a_table_of_one_thread_that_speaks_python() -> None:
    said = answer("""
import io, json, threading, pystrobe
def hot():
    spin(0.2)
with pystrobe.Profiler() as profiler:
    thread = threading.Thread(target=hot, name="worker")
    thread.start()
    work(2)
    thread.join()
def printed(**options):
    text = io.StringIO()
    profiler.profile.print(file=text, **options)
    return text.getvalue()
print(json.dumps([printed(top=1), printed(thread="worker")]))
""")
    whole, part = said
    assert re.search(r"; top=\d+ shows all", whole)
    assert "--top" not in whole
    assert "hot" in part
    assert "burn50" not in part
    assert "of the whole recording" in part
