# SPDX-License-Identifier: Apache-2.0
"""Targets that end, replace themselves, fork or stop, and samplers that die."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from collapsed import Stack
from conftest import oracle_of
from find import Interpreter
from probing import until
from pystrobe_command import Pystrobe, Recorded
from running import Running, apart, cpus, running

PAUSES = pytest.mark.parametrize("pause", ["preempt", "ptrace", "none"])


def names_in(stacks: list[Stack]) -> set[str]:
    return {frame.name for stack in stacks for frame in stack.frames}


def sample_to_the_end(pystrobe: Pystrobe, target: Running) -> Recorded:
    path = pystrobe.directory / "end.strobe"
    finished = pystrobe.succeed("attach", str(target.pid), "-r", "1000", "-o", str(path))
    return Recorded(pystrobe, path, finished)


@pytest.mark.parametrize("deed", ["exit", "abort"])
def test_target_ends(pystrobe: Pystrobe, newest: Interpreter, deed: str) -> None:
    with running(newest, "lifecycle", deed, "0.7") as target:
        recorded = sample_to_the_end(pystrobe, target)
    assert "ended" in recorded.finished.err
    assert "work" in names_in(recorded.collapsed())
    assert recorded.json()["quality"]["complete"]


@pytest.mark.parametrize("deed", ["exec", "exec-other"])
def test_target_execs(pystrobe: Pystrobe, newest: Interpreter, deed: str) -> None:
    with running(newest, "lifecycle", deed, "0.7") as target:
        recorded = sample_to_the_end(pystrobe, target)
        assert target.alive()
    assert "replaced" in recorded.finished.err
    stacks = recorded.collapsed()
    assert "work" in names_in(stacks)
    assert "after_exec" not in names_in(stacks)
    verdict = oracle_of("lifecycle", newest).judge(stacks)
    assert not verdict.impossible, verdict.describe()


def test_target_forks(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "lifecycle", "fork", "0.2") as target:
        recorded = pystrobe.attach(target.pid, seconds=1)
        assert target.alive()
    stacks = recorded.collapsed("--idle")
    verdict = oracle_of("lifecycle", newest).judge(stacks)
    assert not verdict.impossible, verdict.describe()
    assert "child_work" not in names_in(stacks)


def test_target_is_stopped_and_goes_on(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "lifecycle", "none", "0") as target:
        path = pystrobe.directory / "stopped.strobe"
        sampler = pystrobe.start("attach", str(target.pid), "-d", "1.5", "-o", str(path))
        time.sleep(0.5)
        os.kill(target.pid, signal.SIGSTOP)
        out, err = sampler.communicate(timeout=30)
        assert sampler.returncode == 0, (out, err)
        assert target.status("State").startswith("T")
        os.kill(target.pid, signal.SIGCONT)
        assert target.speed(0.2) > 0
    assert "work" in names_in(Recorded(pystrobe, path, pystrobe.run("--version")).collapsed())


@PAUSES
def test_stopped_target_stays_stopped(pystrobe: Pystrobe, newest: Interpreter, pause: str) -> None:
    with running(newest, "lifecycle", "none", "0") as target:
        os.kill(target.pid, signal.SIGSTOP)
        recorded = pystrobe.attach(target.pid, "--pause", pause, seconds=0.5)
        assert target.status("State").startswith("T")
        assert target.status("TracerPid") == "0"
    stacks = recorded.collapsed("--idle")
    assert len({stack.frames for stack in stacks}) == 1
    assert oracle_of("lifecycle", newest).why_impossible(stacks[0].frames) is None


@PAUSES
def test_killed_sampler_leaves_no_trace(
    pystrobe: Pystrobe, newest: Interpreter, pause: str
) -> None:
    signals = ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"]
    kept = ["Cpus_allowed", *signals, "Threads", "NoNewPrivs"]
    with running(newest, "tower") as target:
        before = {key: target.status(key) for key in kept}
        speed = target.speed(0.3)
        nice = os.getpriority(os.PRIO_PROCESS, target.pid)
        scheduler = os.sched_getscheduler(target.pid)
        for _ in range(5):
            sampler = pystrobe.start(
                "attach",
                str(target.pid),
                "-r",
                "10000",
                "--pause",
                pause,
                "-o",
                os.devnull,
                "-f",
                "collapsed",
                "--force",
            )
            time.sleep(0.3)
            assert sampler.poll() is None, sampler.communicate()
            sampler.kill()
            sampler.communicate()
        assert target.alive()
        assert {key: target.status(key) for key in kept} == before
        assert target.status("TracerPid") == "0"
        assert target.status("State").startswith("R")
        assert os.getpriority(os.PRIO_PROCESS, target.pid) == nice
        assert os.sched_getscheduler(target.pid) == scheduler
        # Other programs may take the CPUs now and then.
        until(lambda: target.speed(0.1) > 0.7 * speed)


def test_preemption_never_traces(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        sampler = pystrobe.start(
            "attach", str(target.pid), "-d", "1", "-r", "10000", "--pause", "preempt"
        )
        tracers, states = set(), set()
        while sampler.poll() is None:
            tracers.add(target.status("TracerPid"))
            states.add(target.status("State")[0])
        sampler.communicate()
        assert sampler.returncode == 0
    assert tracers == {"0"}
    assert not states & {"T", "t"}


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("pause", ["preempt", "none"])
def test_nothing_is_written_to_the_target(
    pystrobe: Pystrobe, newest: Interpreter, pause: str, tmp_path: Path
) -> None:
    """No system call that could write to it, signal it, trace it or change its scheduling."""
    log = tmp_path / "calls"
    with running(newest, "threads") as target:
        done = subprocess.run(
            [
                *("strace", "-f", "-o", str(log), str(pystrobe.executable), "attach"),
                *(str(target.pid), "-d", "0.5", "-r", "200", "--pause", pause),
                *("-o", str(tmp_path / "x.strobe")),
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        tids = {target.pid, *map(int, os.listdir(f"/proc/{target.pid}/task"))}
    forbidden = ("process_vm_writev", "ptrace(", "pidfd_send_signal", "kcmp", "userfaultfd")
    directed = ("kill(", "tkill(", "tgkill(", "sched_set", "setpriority(", "prlimit64(", "ioprio_")
    calls = log.read_text().splitlines()
    assert any("process_vm_readv" in call for call in calls)
    for call in calls:
        body = call.split(None, 1)[1]
        assert not body.startswith(forbidden), call
        if body.startswith(directed):
            assert not any(f"({tid}," in body or f", {tid}," in body for tid in tids), call
        if body.startswith(("open(", "openat(")) and f"/proc/{target.pid}/" in body:
            assert "O_WRONLY" not in body, call
            assert "O_RDWR" not in body, call


def looks_and_reads(pystrobe: Pystrobe, pid: int, seconds: float) -> tuple[int, int]:
    """At a process of 30 threads that sleep briefly. Reads of several pieces, as of stacks, from
    the first to the last of many threads at once: before, how the process is found takes hundreds,
    and after, what its threads are called."""
    log = pystrobe.directory / "calls"
    strace = ("strace", "-f", "--seccomp-bpf", "-e", "trace=process_vm_readv", "-o", str(log))
    attach = ("attach", str(pid), "-d", f"{seconds}", "-r", "25", "-q", "-f", "json", "-o", "-")
    done = subprocess.run(
        [*strace, str(pystrobe.executable), *attach], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    quality = json.loads(done.stdout)["quality"]
    assert quality["stacks"] > 0.8 * 30 * quality["taken"]
    pieces = [int(count) for count in re.findall(r"\], (\d+), \[", log.read_text())]
    of_many = [at for at, count in enumerate(pieces) if count >= 30]
    assert len(of_many) >= 0.8 * quality["taken"]
    reads = [count for count in pieces[of_many[0] : of_many[-1] + 1] if count > 1]
    return quality["taken"], len(reads)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_threads_asleep_are_read_together(pystrobe: Pystrobe, newest: Interpreter) -> None:
    """What a longer run reads beyond a shorter one is what its looks take."""
    script = (
        "import threading, time\n"
        "def nap():\n"
        "    while True: time.sleep(0.01)\n"
        "for _ in range(30): threading.Thread(target=nap, daemon=True).start()\n"
        "print(flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(newest.command("-c", script), stdout=subprocess.PIPE) as target:
        try:
            assert target.stdout
            target.stdout.readline()
            few, reads_of_few = looks_and_reads(pystrobe, target.pid, 0.4)
            many, reads_of_many = looks_and_reads(pystrobe, target.pid, 1.2)
        finally:
            target.kill()
    assert (reads_of_many - reads_of_few) / (many - few) < 10


def test_interrupt_ends_and_reports(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        path = pystrobe.directory / "interrupted.strobe"
        sampler = pystrobe.start("attach", str(target.pid), "-o", str(path))
        time.sleep(0.7)
        sampler.send_signal(signal.SIGINT)
        out, err = sampler.communicate(timeout=30)
        assert sampler.returncode == 0, (out, err)
        assert target.alive()
    assert "node_0" in out
    report = Recorded(pystrobe, path, pystrobe.run("--version"))
    assert report.json()["quality"]["complete"]


def test_killed_sampler_leaves_a_readable_recording(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "tower") as target:
        path = pystrobe.directory / "cut.strobe"
        sampler = pystrobe.start("attach", str(target.pid), "-r", "1000", "-o", str(path))
        time.sleep(3)
        sampler.kill()
        sampler.communicate()
    cut = Recorded(pystrobe, path, pystrobe.run("--version"))
    report = cut.json()
    assert not report["quality"]["complete"]
    assert report["total"]["samples"] > 0
    verdict = oracle_of("tower", newest).judge(cut.collapsed())
    assert not verdict.impossible, verdict.describe()


def test_two_samplers_at_once(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        paths = [pystrobe.directory / f"{n}.strobe" for n in range(2)]
        samplers = [
            pystrobe.start("attach", str(target.pid), "-d", "1", "-o", str(path)) for path in paths
        ]
        for sampler in samplers:
            out, err = sampler.communicate(timeout=30)
            assert sampler.returncode == 0, (out, err)
    for path in paths:
        recorded = Recorded(pystrobe, path, pystrobe.run("--version"))
        verdict = oracle_of("tower", newest).judge(recorded.collapsed())
        assert not verdict.impossible, verdict.describe()


def sleeps(pid: int) -> int:
    """How often the main thread of a process went to sleep."""
    for line in Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    raise KeyError(pid)


@pytest.mark.parametrize("pinned", [False, True], ids=["unpinned", "apart"])
def test_the_sampler_sleeps_through_most_deadlines(
    pystrobe: Pystrobe, newest: Interpreter, pinned: bool
) -> None:
    if len(cpus()) < 2:
        pytest.skip("with one CPU the sampler is awake for each sample")
    target_cpu, sampler_cpu = apart() if pinned else (None, None)
    with running(newest, "tower", cpu=target_cpu) as target:
        arguments = ["attach", str(target.pid), "-r", "1000", "-d", "2", "-f", "json"]
        sampler = pystrobe.start(*arguments, "-o", "-", cpu=sampler_cpu)
        time.sleep(1.7)
        slept = sleeps(sampler.pid)
        quality = json.loads(sampler.communicate()[0])["quality"]
    # A twelfth where the machine is quiet; one that wakes for each sample sleeps at least as often.
    assert slept < 0.6 * quality["taken"], quality
    # Not because it was late for them.
    assert quality["taken"] > 0.9 * quality["deadlines"] > 1500
    assert quality["late"] < 0.2 * quality["taken"]
    assert quality["proved"] > 0.99 * quality["taken"]


@pytest.mark.parametrize("duration", [2.5, 1.2], ids=["in between", "at the end"])
def test_time_in_which_the_sampler_was_stopped_goes_to_no_stack(
    pystrobe: Pystrobe, newest: Interpreter, duration: float
) -> None:
    arguments = ["-r", "1000", "-d", f"{duration}", "-f", "json", "-o", "-"]
    with running(newest, "tower") as target:
        sampler = pystrobe.start("attach", str(target.pid), *arguments)
        time.sleep(0.6)
        sampler.send_signal(signal.SIGSTOP)
        time.sleep(1)
        sampler.send_signal(signal.SIGCONT)
        report = json.loads(sampler.communicate()[0])
    # All but the last tenth of a second, for which the first look after it stands.
    assert 0.8e9 < report["unseen"]["wall_ns"] < 1.2e9
    total, unseen = report["total"], report["unseen"]
    share = unseen["wall_ns"] / total["wall_ns"]
    assert unseen["cpu_ns"] / total["cpu_ns"] == pytest.approx(share, abs=0.15)
    quality = report["quality"]
    # Samples are stored in microseconds.
    assert quality["unseen_ns"] == pytest.approx(report["unseen"]["wall_ns"], abs=2000)
    assert report["total"]["wall_ns"] == pytest.approx(quality["duration_ns"], rel=0.02)
    assert quality["lost"] > 700
    assert quality["taken"] + quality["lost"] == quality["deadlines"]


def test_a_low_rate_leaves_no_time_out(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        report = pystrobe.attach(target.pid, seconds=2.5, rate=1).json()
    assert report["total"]["wall_ns"] == pytest.approx(report["quality"]["duration_ns"], rel=0.02)
