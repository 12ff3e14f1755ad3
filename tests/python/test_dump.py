# SPDX-License-Identifier: Apache-2.0
"""`pystrobe dump`: every thread's stack, now, and nothing made up."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from cases import CALL_HEAVY, Case
from collapsed import Frame, Stack, make_frame
from conftest import oracle_of
from find import Interpreter
from pystrobe_command import Pystrobe, with_few_descriptors
from running import TARGETS, Running, running

pytestmark = pytest.mark.beside_others


def frames_of(thread: dict[str, Any]) -> tuple[Frame, ...]:
    """Root first."""
    return tuple(
        make_frame(frame["function"], frame["file"], frame["line"])
        for frame in reversed(thread["frames"])
    )


def line_of(text: str, target: str) -> int:
    lines = (TARGETS / f"{target}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def wait_until_asleep(target: Running) -> None:
    """Until every thread of it waits."""
    for _ in range(200):
        states = []
        for task in os.listdir(f"/proc/{target.pid}/task"):
            with open(f"/proc/{target.pid}/task/{task}/stat") as stat:
                states.append(stat.read().rpartition(")")[2].split()[0])
        if set(states) == {"S"}:
            return
        time.sleep(0.02)
    pytest.fail(f"threads still run: {states}")


def test_the_main_thread_has_its_name_without_the_threading_module(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "fib") as target:
        names = [thread["name"] for thread in pystrobe.dump(target.pid)["threads"]]
    assert names == ["MainThread"]


def test_the_main_thread_is_the_one_that_the_program_takes_for_it(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """Up to 3.12 that is the thread that imports threading."""
    lines = [
        "import _thread, os, time",
        "def first():",
        "    import threading as t",
        "    mine = t.main_thread().ident == t.get_ident()",
        "    print(t.get_native_id() if mine else os.getpid(), flush=True)",
        "    time.sleep(60)",
        "_thread.start_new_thread(first, ())",
        "time.sleep(60)",
    ]
    command = interpreter.command("-I", "-S", "-c", "\n".join(lines))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout
            main = int(target.stdout.readline())
            threads = pystrobe.dump(target.pid)["threads"]
        finally:
            target.kill()
    assert len(threads) == 2
    assert [thread["tid"] for thread in threads if thread["name"] == "MainThread"] == [main]


def test_waiting_threads_are_shown_exactly(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    with running(interpreter, "frozenstack") as target:
        wait_until_asleep(target)
        dump = pystrobe.dump(target.pid)
        tasks = {int(task) for task in os.listdir(f"/proc/{target.pid}/task")}
    assert dump["pid"] == target.pid
    assert dump["python"].startswith(interpreter.version)
    assert dump["free_threaded"] == interpreter.free_threaded
    threads = dump["threads"]
    assert {thread["tid"] for thread in threads} == tasks
    assert threads[0]["tid"] == target.pid
    assert sorted(one["name"] for one in threads[1:]) == ["waits-0", "waits-1", "waits-2"]
    oracle = oracle_of("frozenstack", interpreter)
    for thread in threads:
        assert thread["complete"]
        assert thread["proved"]
        assert thread["state"] == "S"
        assert not thread["holds_gil"]
        assert thread["interpreter"] == 0
        assert oracle.why_impossible(frames_of(thread)) is None
    for thread in threads[1:]:
        own = [frame.name for frame in frames_of(thread) if frame.file == "frozenstack.py"]
        assert own == ["outer", "middle", "wait_here"]
        waiting = next(one for one in frames_of(thread) if one.name == "wait_here")
        assert waiting.line == line_of("gate.wait()", "frozenstack")


def test_locals_are_of_one_moment(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    seen = set()
    with running(interpreter, "agreeing") as target:
        for _ in range(20):
            [thread] = pystrobe.dump(target.pid, "--locals")["threads"]
            [work] = [frame for frame in thread["frames"] if frame["function"] == "work"]
            values = {name: int(local["value"]) for name, local in work["locals"].items()}
            if len(values) < 3 or not thread["proved"]:
                continue
            assert 0 <= values["first"] - values["second"] <= 1, values
            assert 0 <= values["count"] - values["first"] <= 1, values
            seen.add(values["count"])
    assert len(seen) >= 5, "too few dumps to tell"


def test_locals_only_when_asked(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    with running(interpreter, "frozenstack") as target:
        wait_until_asleep(target)
        without = pystrobe.run("dump", str(target.pid), "--json").out
        asked = pystrobe.run("dump", str(target.pid), "--locals")
        dump = pystrobe.dump(target.pid, "--locals")
    assert "thread 1" not in without
    assert "secret" in asked.err
    thread = next(one for one in dump["threads"] if one["name"] == "waits-1")
    frame = next(one for one in thread["frames"] if one["function"] == "wait_here")
    found = frame["locals"]
    assert found["number"] == {"value": "1", "argument": True}
    assert found["text"] == {"value": "'thread 1'", "argument": False}
    assert found["gate"]["argument"]


@pytest.mark.each_layout
@pytest.mark.parametrize("case", CALL_HEAVY, ids=lambda case: case.name)
def test_busy_code_is_dumped_every_time(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case
) -> None:
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    oracle = oracle_of(case.target, interpreter)
    with running(interpreter, case.target, *case.arguments) as target:
        for _ in range(8):
            dump = pystrobe.dump(target.pid)
            assert target.pid in {thread["tid"] for thread in dump["threads"]}
            for thread in dump["threads"]:
                if thread["proved"] and thread["complete"]:
                    reason = oracle.why_impossible(frames_of(thread))
                    assert reason is None, (thread["name"], frames_of(thread))
            main = next(one for one in dump["threads"] if one["tid"] == target.pid)
            assert main["proved"], main
            assert main["complete"], main
        assert target.alive()
        assert target.status("TracerPid") == "0"


def test_lock_holder_and_states(pystrobe: Pystrobe, newest: Interpreter) -> None:
    holders = set()
    with running(newest, "idle") as target:
        for _ in range(10):
            dump = pystrobe.dump(target.pid)
            assert len(dump["threads"]) == target.ready["idle"] + 1
            holders |= {one["tid"] for one in dump["threads"] if one["holds_gil"]}
            assert {one["state"] for one in dump["threads"][1:]} == {"S"}
            assert dump["threads"][0]["state"] == "R"
    assert holders == {target.pid}


def test_more_threads_than_descriptors(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "idle", "100") as target:
        finished = with_few_descriptors(pystrobe, 64, "dump", str(target.pid), "--json")
    assert finished.code == 0, finished
    threads = json.loads(finished.out)["threads"]
    assert len(threads) == target.ready["idle"] + 1
    assert all(one["frames"] and one["proved"] for one in threads)


def test_without_descriptors_the_cure_is_told(pystrobe: Pystrobe, newest: Interpreter) -> None:
    """All or nothing, however few there are."""
    codes = set()
    with running(newest, "idle", "4") as target:
        for limit in range(4, 16):
            finished = with_few_descriptors(pystrobe, limit, "dump", str(target.pid), "--json")
            codes.add(finished.code)
            if finished.code != 0:
                assert "ulimit -n" in finished.err, (limit, finished)
            else:
                threads = json.loads(finished.out)["threads"]
                assert len(threads) == target.ready["idle"] + 1, limit
                assert all(one["frames"] for one in threads), limit
    assert len(codes) == 2, codes


def test_dump_for_people(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "deep", "200") as target:
        out = pystrobe.succeed("dump", str(target.pid)).out
    assert f"{target.pid}" in out
    assert "spin" in out
    assert "more times" in out
    assert out.index("spin") < out.index("<module>")


@pytest.mark.alone
def test_subinterpreters_are_told_apart(pystrobe: Pystrobe, interpreter: Interpreter) -> None:
    case = Case("subinterpreters", since=(3, 12))
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    with running(interpreter, case.target) as target:
        time.sleep(0.2)
        dump = pystrobe.dump(target.pid)
    leaves = {
        thread["interpreter"]: {frame.name for frame in frames_of(thread)}
        for thread in dump["threads"]
        if thread["interpreter"] != 0
    }
    assert len(leaves) == 2
    first, second = leaves.values()
    assert not first & second - {"<module>"}


def dump_native(pystrobe: Pystrobe, target: Running) -> list[dict[str, Any]]:
    done = pystrobe.run("dump", str(target.pid), "--json", "--native")
    assert done.code == 0, done.err
    threads: list[dict[str, Any]] = json.loads(done.out)["threads"]
    return threads


NATIVE_CASES = [
    *(pytest.param(Case(name), id=name) for name in ("callbacks", "awaits")),
    *(pytest.param(Case(n), id=n, marks=pytest.mark.matrix) for n in ("generators", "recursion")),
]


@pytest.mark.each_layout
@pytest.mark.parametrize("case", NATIVE_CASES)
def test_c_functions_fit_between_those_of_python(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case
) -> None:
    oracle = oracle_of(case.target, interpreter)
    with running(interpreter, case.target, *case.arguments) as target:
        dumps = [dump_native(pystrobe, target) for _ in range(8)]
    stacks = []
    # Of a thread that stands where a call begins or ends one look does not tell whose it is.
    cut = [thread for threads in dumps for thread in threads if not thread["native_whole"]]
    assert len(cut) <= 3, cut
    for thread in (thread for threads in dumps for thread in threads):
        assert thread["proved"]
        python = [frame for frame in thread["frames"] if not frame["native"]]
        stacks.append(Stack(frames_of({"frames": python}), 1, thread["name"]))
    verdict = oracle.judge(stacks)
    assert verdict.total >= len(dumps)
    assert not verdict.impossible.total(), verdict.describe()


def dumps_with(
    pystrobe: Pystrobe, target: Running, wanted: Callable[[dict[str, Any]], bool], count: int
) -> list[dict[str, Any]]:
    """The first `count` threads that are as wanted, of as many dumps as that takes: a dump shows
    what a program does at one moment, and how often it does what is looked for is chance."""
    found: list[dict[str, Any]] = []
    end = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} in a minute"
        found += filter(wanted, dump_native(pystrobe, target))
    return found


def test_c_functions_stand_below_who_called_them(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    def shrinks(thread: dict[str, Any]) -> bool:
        return any(
            (one["function"], one["native"]) == ("shrink", False) for one in thread["frames"]
        )

    def compresses(thread: dict[str, Any]) -> bool:
        return shrinks(thread) and any(
            "compress" in one["function"] or "deflate" in one["function"]
            for one in thread["frames"]
            if one["native"]
        )

    # It waits for the lock there too, in the interpreter's own code where zlib is built in.
    with running(interpreter, "native") as target:
        inside = dumps_with(pystrobe, target, shrinks, 5)
        inside += dumps_with(pystrobe, target, compresses, 1)
    for thread in inside:
        assert thread["name"] == "native"
        frames = thread["frames"]
        python = [frame["function"] for frame in frames if not frame["native"]]
        assert python[:2] == ["shrink", "native_work"]
        assert not any(frame["native"] for frame in frames[len(frames) - len(python) :])


def test_a_look_at_c_functions_leaves_the_target_as_it_was(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "frozenstack") as target:
        wait_until_asleep(target)
        threads = dump_native(pystrobe, target)
        assert {thread["state"] for thread in threads} == {"S"}
        wait_until_asleep(target)
        with open(f"/proc/{target.pid}/status") as status:
            assert "TracerPid:\t0" in status.read()
    text = pystrobe.run("dump", "1", "--native", "--pause", "none")
    assert text.code == 2
    assert "--native stops threads by ptrace" in text.err


def test_of_threads_that_take_turns_one_has_the_lock(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    """They are looked at one after the other, and the lock changes hands in between."""
    lines = [
        "import threading",
        "def work():",
        "    while True: sum(range(100))",
        "for _ in range(4): threading.Thread(target=work, daemon=True).start()",
        "print('ready', flush=True)",
        "work()",
    ]
    command = newest.command("-c", "\n".join(lines))
    holders = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout
            target.stdout.readline()
            for _ in range(20):
                done = pystrobe.succeed("dump", str(target.pid), "--json", "--native")
                threads = json.loads(done.out)["threads"]
                assert len(threads) == 5
                holders.append(sum(one["holds_gil"] for one in threads))
        finally:
            target.kill()
    assert max(holders) == 1, holders
    # It is free for a moment, too.
    assert holders.count(1) >= 15, holders


def test_threads_without_python_are_shown(pystrobe: Pystrobe, newest: Interpreter) -> None:
    built = pystrobe.directory / "c_callbacks.so"
    source = TARGETS / "c_callbacks.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(built), str(source)], check=True)
    with running(newest, "c_callbacks", str(built)) as target:

        def is_alone(thread: dict[str, Any]) -> bool:
            frames = thread["frames"]
            return bool(frames) and all(frame["native"] for frame in frames)

        alone = dumps_with(pystrobe, target, is_alone, 3)
    assert target.pid not in {thread["tid"] for thread in alone}
    assert {frame["file"] for thread in alone for frame in thread["frames"]} & {str(built)}
