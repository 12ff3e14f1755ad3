# SPDX-License-Identifier: Apache-2.0
"""Calls down to a depth, against programs that count their calls by depth themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from call_tracing import Way, each_engine, told
from pystrobe_command import Pystrobe

pytestmark = pytest.mark.beside_others

#: Each function is told how deep it is called; `work` is 1. Nothing else calls Python functions.
COUNTING = """
AT = collections.defaultdict(int)
def fib(depth, n):
    AT["fib", depth] += 1
    return n if n < 2 else fib(depth + 1, n - 1) + fib(depth + 1, n - 2)
def numbers(depth, n):
    AT["numbers", depth] += 1
    for i in range(n):
        leaf(0)  # whose depth changes
        yield i
def leaf(depth):
    AT["leaf", depth] += 1
def steps(depth, generator):
    AT["steps", depth] += 1
    next(generator, None)
    if depth < 5:
        steps(depth + 1, generator)
    next(generator, None)
def fails(depth, n):
    AT["fails", depth] += 1
    try:
        if n == 0:
            raise KeyError
        fails(depth + 1, n - 1)
    finally:
        leaf(depth + 1)
def catches(depth, n):
    AT["catches", depth] += 1
    try:
        fails(depth + 1, n)
    except KeyError:
        leaf(depth + 1)
def endless():
    ENDLESS[0] += 1  # needs no call of its own, for which there may be no depth left
    endless()
ENDLESS = [0]
def work():
    AT["work", 1] += 1
    fib(2, 9)
    for n in range(5):
        catches(2, n)
    ENDLESS[0] = 0
    try:
        endless()
    except RecursionError:
        leaf(2)
    for at in range(ENDLESS[0]):
        AT["endless", 2 + at] += 1
def told_and_true(tracer, depth):
    names = sorted({name for name, at in AT})
    true = {name: sum(n for (one, at), n in AT.items() if one == name and at <= depth)
            for name in names}
    deeper = sum(n for (name, at), n in AT.items() if at > depth)
    return [[found(tracer, names), tracer.left_out], [true, deeper]]
"""


def assert_told_is_true(way: Way, code: str) -> None:
    """Of what ``code`` prints: told_and_true()."""
    ours, theirs = told(way, COUNTING + code)
    assert ours == theirs


@each_engine
@pytest.mark.parametrize("timeline", [False, True])
def test_counts_and_what_is_left_out_are_those_of_the_program(way: Way, timeline: bool) -> None:
    said = told(
        way,
        f"""{COUNTING}
answers = []
for depth in (1, 2, 3, 7, 500):
    AT.clear()
    tracer = traced(work, max_depth=depth, timeline={timeline})
    answers.append(told_and_true(tracer, depth))
    assert tracer._tracer.facts()["unmatched"] == 0
print(json.dumps(answers))
""",
    )
    for ours, theirs in said:
        assert ours == theirs
    assert [theirs[1] > 0 for _, theirs in said] == [True] * 5


@each_engine
def test_generators_that_go_on_at_another_depth(way: Way) -> None:
    """A call is as deep as it began; the time of a step is where that is made."""
    said = told(
        way,
        f"""{COUNTING}
def program():
    generator = numbers(3, 8)  # its first step is within `steps`, at 2
    steps(2, generator)
    generator.close()
def counts(depth):
    AT.clear()
    tracer = traced(program, max_depth=depth)
    calls = found(tracer, ["program", "steps", "numbers"])
    return [calls, tracer.left_out, tracer._tracer.facts()["unmatched"]]
print(json.dumps([counts(depth) for depth in (1, 2, 3, 5, 20)]))
""",
    )
    # 4 of steps, at 2 to 5; 1 of numbers, at 3; 8 of leaf, at 4, 5, 6, 7, 7, 6, 5 and 4.
    assert said == [
        [{"program": 1, "steps": 0, "numbers": 0}, 4 + 1 + 8, 0],
        [{"program": 1, "steps": 1, "numbers": 0}, 3 + 1 + 8, 0],
        [{"program": 1, "steps": 2, "numbers": 1}, 2 + 8, 0],
        [{"program": 1, "steps": 4, "numbers": 1}, 4, 0],
        [{"program": 1, "steps": 4, "numbers": 1}, 0, 0],
    ]


@each_engine
def test_it_is_counted_from_where_the_tracing_began(way: Way) -> None:
    said = told(
        way,
        f"""{COUNTING}
def begins():
    tracer.start()
    fib(1, 6)
def outer():
    begins()
    fib(1, 5)
def outermost():
    outer()
    fib(1, 4)
tracer = pystrobe.Tracer(engine=ENGINE, max_depth=2)
outermost()
outer_again = fib(1, 3)
def ends():
    tracer.stop()
AT["ends", 1] += 1
ends()
names = ["begins", "outer", "outermost"]
running = {{row.function: row.running for row in tracer.stats() if row.function in names}}
print(json.dumps([running, told_and_true(tracer, 2)]))
""",
    )
    running, (ours, theirs) = said
    assert running == {"begins": 1, "outer": 1, "outermost": 1}
    assert ours == theirs


@each_engine
def test_it_is_counted_in_each_thread(way: Way) -> None:
    assert_told_is_true(
        way,
        """
def both():
    threads = [threading.Thread(target=fib, args=(1, 9)) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
tracer = traced(both, max_depth=3, stdlib=False)
AT.clear()  # threads that count at once lose some
fib(1, 9)
for key in AT:
    AT[key] *= 3
print(json.dumps(told_and_true(tracer, 3)))
""",
    )


@each_engine
def test_what_is_left_out_otherwise_is_no_level(way: Way) -> None:
    assert_told_is_true(
        way,
        """
def between(depth):
    fib(depth, 6)
    leaf(depth)
def program():
    between(2)
    between(2)
tracer = traced(program, max_depth=3, exclude=["between", "leaf"])
AT["program", 1] += 1
for key in [key for key in AT if key[0] == "leaf"]:
    del AT[key]
print(json.dumps(told_and_true(tracer, 3)))
""",
    )


@each_engine
def test_the_time_is_the_callers_and_files_tell(way: Way, tmp_path: Path) -> None:
    path = way.by.directory(tmp_path) / "x.trace.json"
    said = told(
        way,
        f"""
def sleeps(n):
    time.sleep(0.05) if n == 0 else sleeps(n - 1)
def work():
    sleeps(6)
tracer = traced(work, max_depth=3, timeline=True)
tracer.save({way.by.seen(path)!r})
quality = tracer.profile().report().quality
spans = [one["name"] for one in json.load(open({way.by.seen(path)!r}))["traceEvents"]]
print(json.dumps([sum(row.self for row in tracer.stats() if row.function == "sleeps"),
                  spans.count("sleeps"), quality.taken, quality.left_out, quality.lost,
                  str(tracer.profile())]))
""",
    )
    own, spans, *figures, text = said
    assert own >= 0.05
    assert spans == 2
    assert figures == [3, 5, 0]
    assert "down to a depth of 3 traced, 3 calls" in " ".join(text.split())
    assert "5 deeper calls left out" in " ".join(text.split())


def test_of_a_whole_program(pystrobe: Pystrobe, tmp_path: Path) -> None:
    """What loads it is no level of it, and none of its calls are counted."""
    script, made, recording = (tmp_path / name for name in ("p.py", "x.json", "x.strobe"))
    script.write_text("def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(9)\n")
    finished = pystrobe.succeed(
        *("trace", "--python", sys.executable, "--no-stdlib", "--max-depth", "3"),
        *("-o", str(made), "-o", str(recording), str(script)),
    )
    told: dict[str, Any] = json.loads(made.read_text())
    calls = {row["name"]: row["self"]["samples"] for row in told["functions"]}
    assert calls == {"<module>": 1, "fib": 3}
    assert told["quality"]["left_out"] == 109 - 3
    assert told["metadata"]["max_depth"] == 3
    assert "106 deeper calls left out" in " ".join(finished.err.split())
    again = pystrobe.succeed("report", str(recording))
    assert "106 deeper calls left out" in " ".join(again.out.split())


@pytest.mark.parametrize("value", ["0", "-3", "1.5", "'2'", "True", "10**6"])
def test_bad_values_are_refused(value: str) -> None:
    code = f"""
import pystrobe
try:
    pystrobe.Tracer(max_depth={value})
except ValueError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"max_depth is {eval(value)!r}" in said.stdout
    assert "a whole number from 1 to 131,072, or None" in said.stdout


def test_a_bad_setting_is_told_and_the_program_runs() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", "import pystrobe.auto; print('ran')"],
        env={"PYSTROBE_ENABLE": "mode=trace,max_depth=0"},
        capture_output=True,
        text=True,
    )
    assert finished.stdout == "ran\n"
    assert "max_depth is 0" in finished.stderr
