# SPDX-License-Identifier: Apache-2.0
"""Every call traced, against programs that count their calls themselves."""

from __future__ import annotations

import json
import os
import pstats
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from own_interpreters import Own, own_interpreters
from own_program import answer, run


@dataclass(frozen=True)
class Way:
    """An interpreter, and how it is to tell of calls."""

    by: Own
    engine: str


def ways() -> list[Way]:
    found = []
    for own in own_interpreters():
        found.append(Way(own, "setprofile"))
        if own.version >= (3, 12):
            found.append(Way(own, "monitoring"))
        elif has_frame_eval(own):
            found.append(Way(own, "frame-eval"))
    return found


def has_frame_eval(own: Own) -> bool:
    """The first releases of 3.11 do not let every frame be evaluated."""
    return own.version < (3, 11) or (3, 11, 4) <= own.version < (3, 12)


def name_of_way(way: Way) -> str:
    return f"{way.by.name}-{way.engine}"


each_engine = pytest.mark.parametrize("way", ways(), ids=name_of_way)
each_monitoring = pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine == "monitoring"], ids=name_of_way
)
each_but_frame_eval = pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine != "frame-eval"], ids=name_of_way
)

COUNTING = """
import asyncio, collections, contextlib, json, random, threading
import pystrobe

COUNTS = collections.Counter()

def traced(work, **options):
    with pystrobe.Tracer(engine=ENGINE, **options) as tracer:
        work()
    return tracer

def found(tracer, names):
    calls = collections.Counter()
    for row in tracer.stats():
        calls[row.function.rpartition(".")[2]] += row.calls
    return {name: calls[name] for name in names}
"""


def told(way: Way, code: str) -> Any:
    return answer(f"ENGINE = {way.engine!r}\n{COUNTING}{code}", by=way.by)


PROGRAMS = {
    "recursion": """
def fib(n):
    COUNTS["fib"] += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n):
    COUNTS["even"] += 1
    return n == 0 or odd(n - 1)
def odd(n):
    COUNTS["odd"] += 1
    return n != 0 and even(n - 1)
def work():
    fib(14)
    even(31)
""",
    "generators": """
def numbers(n):
    COUNTS["numbers"] += 1
    for i in range(n):
        yield i
def nested(n):
    COUNTS["nested"] += 1
    yield from numbers(n)
    yield helper()
def helper():
    COUNTS["helper"] += 1
def work():
    for n in range(5):
        list(nested(n))
    closed = numbers(10)
    next(closed)
    closed.close()
    helper()
    thrown = nested(10)
    next(thrown)
    with contextlib.suppress(KeyError):
        thrown.throw(KeyError)
    never_begun = numbers(3)
    helper()
""",
    "exceptions": """
def deep(n):
    COUNTS["deep"] += 1
    if n == 0:
        raise ValueError
    try:
        deep(n - 1)
    finally:
        cleanup()
def cleanup():
    COUNTS["cleanup"] += 1
def endless():
    endless_calls[0] += 1  # needs no call of its own, for which there may be no depth left
    endless()
endless_calls = [0]
def endless_generator():
    generator_steps[0] += 1
    yield from endless_generator()
generator_steps = [0]
def work():
    for n in range(10):
        with contextlib.suppress(ValueError):
            deep(n)
    with contextlib.suppress(RecursionError):
        endless()
    COUNTS["endless"] = endless_calls[0]
    with contextlib.suppress(RecursionError):
        next(endless_generator())
    COUNTS["endless_generator"] = generator_steps[0]
    cleanup()
""",
    "coroutines": """
async def step(n):
    COUNTS["step"] += 1
    await asyncio.sleep(0)
    helper()
    if n:
        await step(n - 1)
async def numbers(n):
    COUNTS["numbers"] += 1
    for i in range(n):
        await asyncio.sleep(0)
        yield i
def helper():
    COUNTS["helper"] += 1
async def main():
    COUNTS["main"] += 1
    await asyncio.gather(*(step(n) for n in range(5)))
    async for _ in numbers(4):
        helper()
def work():
    asyncio.run(main())
""",
    "objects": """
class Base:
    def __init__(self):
        COUNTS["__init__"] += 1
    def __eq__(self, other):
        COUNTS["__eq__"] += 1
        return True
    @property
    def value(self):
        COUNTS["value"] += 1
        return 1
    def key(self):
        COUNTS["key"] += 1
        return self.value
class Sequence:
    def __getitem__(self, index):
        COUNTS["__getitem__"] += 1
        return index
def work():
    sequence = Sequence()
    for i in range(50):  # often enough to be specialised
        sequence[i]
    things = [Base() for _ in range(20)]
    things.sort(key=Base.key)
    things.index(Base())
    sum(map(lambda thing: thing.value, things))
""",
}


@each_engine
@pytest.mark.parametrize("program", PROGRAMS)
def test_counts_are_those_of_the_program(way: Way, program: str) -> None:
    said = told(
        way,
        PROGRAMS[program] + "tracer = traced(work)\n"
        "print(json.dumps({'found': found(tracer, COUNTS), 'true': COUNTS}))",
    )
    assert said["found"] == said["true"]
    assert sum(said["true"].values()) >= 20


@each_engine
def test_counts_of_any_program(way: Way) -> None:
    """Functions that call each other, raise and yield as chance will have it."""
    said = told(
        way,
        """
def make(name):
    def plain(depth):
        COUNTS[name] += 1
        go_on(depth)
    def generator(depth):
        COUNTS[name] += 1
        go_on(depth)
        yield
        go_on(depth)
    function = generator if name.startswith("generator") else plain
    function.__code__ = function.__code__.replace(co_name=name, **(
        {"co_qualname": name} if hasattr(function.__code__, "co_qualname") else {}))
    return function

FUNCTIONS = [make(f"{kind}{i}") for kind in ("plain", "generator") for i in range(6)]
chance = random.Random(1)
held = []

def go_on(depth):
    for _ in range(chance.randrange(4) if depth else 0):
        function = chance.choice(FUNCTIONS)
        with contextlib.suppress(ZeroDivisionError):
            value = function(depth - 1)
            if value is not None:
                if chance.random() < 0.3:
                    next(value)
                    held.append(value)
                else:
                    list(value)
            if chance.random() < 0.2:
                1 / 0
    if held and chance.random() < 0.2:
        held.pop(0).close()

def work():
    for _ in range(60):
        go_on(8)

tracer = traced(work)
print(json.dumps({'found': found(tracer, COUNTS), 'true': COUNTS}))
""",
    )
    assert said["found"] == said["true"]
    assert sum(said["true"].values()) > 1000


@each_engine
def test_threads_before_and_after(way: Way) -> None:
    said = told(
        way,
        """
def task():
    for _ in range(100):
        step()
def step():
    pass
def waits():
    ready.set()
    go.wait()
    task()

ready, go = threading.Event(), threading.Event()
before = threading.Thread(target=waits, name="before")
before.start()
ready.wait()
def work():
    after = threading.Thread(target=task, name="after")
    after.start()
    go.set()
    after.join()
    before.join()
tracer = traced(work)
print(json.dumps({
    "counts": found(tracer, ["task", "step"]),
    "running": [row.running for row in tracer.stats() if row.function == "waits"],
    "threads": [sum(row.calls for row in one.functions if row.function == "step")
                for one in tracer.threads()],
    "names": sorted(one.name for one in tracer.threads()),
}))
""",
    )
    assert said["counts"] == {"task": 2, "step": 200}
    assert said["running"] == [1]
    assert sorted(said["threads"]) == [0, 100, 100]
    assert said["names"] == ["MainThread", "after", "before"]


@each_engine
def test_times_are_elapsed_and_of_the_cpu(way: Way) -> None:
    said = told(
        way,
        """
def program():
    global used, told_wall
    begin, cpu = time.perf_counter(), time.thread_time()
    told_wall = work(4)
    used = time.thread_time() - cpu
tracer = traced(program)
rows = {row.function: row for row in tracer.stats()}
print(json.dumps({"wall": told_wall, "used": used,
    "total": {name: rows[name].total for name in told_wall},
    "cpu": {name: rows[name].total_cpu for name in told_wall},
    "program": rows["program"].total_cpu,
    }))
""",
    )
    for name, seconds in said["wall"].items():
        assert said["total"][name] == pytest.approx(seconds, rel=0.01), name
    for name in ("burn50", "burn30", "burn20"):
        assert said["cpu"][name] == pytest.approx(4 * int(name[4:]) / 1000, rel=0.02), name
    assert said["cpu"]["nap"] < 0.01
    assert said["program"] == pytest.approx(said["used"], rel=0.005)


@each_engine
def test_recursive_calls_are_not_counted_twice(way: Way) -> None:
    said = told(
        way,
        """
def down(n):
    if n:
        down(n - 1)
    else:
        spin(0.05)
tracer = traced(lambda: down(20))
row = next(row for row in tracer.stats() if row.function == "down")
print(json.dumps({"calls": row.calls, "recursive": row.recursive_calls, "total": row.total,
    "callers": {one.function: one.calls for one in row.callers}}))
""",
    )
    assert (said["calls"], said["recursive"]) == (21, 20)
    assert said["callers"] == {"<lambda>": 1, "down": 20}
    assert 0.05 <= said["total"] < 0.5


@each_but_frame_eval
def test_functions_of_c_are_told_where_asked_for(way: Way) -> None:
    said = told(
        way,
        """
def work():
    for word in ("a", "b"):
        len(word)
        word.upper()
    [3, 1].sort()
    time.sleep(0.02)
with_c, without = traced(work, builtins=True), traced(work)
print(json.dumps({"with": {row.function: row.calls for row in with_c.stats() if not row.line},
    "sleep": next(row.self for row in with_c.stats() if row.function == "time.sleep"),
    "without": [row.function for row in without.stats() if not row.line]}))
""",
    )
    calls = said["with"]
    assert (calls["len"], calls["str.upper"], calls["list.sort"]) == (2, 2, 1)
    assert said["sleep"] >= 0.02
    assert said["without"] == []


@each_engine
def test_every_file_has_the_calls(way: Way, tmp_path: Path) -> None:
    names = ["work.pstats", "work.html", "work.strobe", "work.pb.gz", "work.collapsed"]
    folder = way.by.directory(tmp_path)
    finished = run(
        f"""
import pystrobe
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
with pystrobe.Tracer(engine={way.engine!r}) as tracer:
    fib(10)
for name in {names!r}:
    tracer.save("{way.by.seen(folder)}/" + name)
tracer.print()
tracer.profile().print()
""",
        by=way.by,
    )
    assert finished.returncode == 0, finished.stderr
    assert "         177 " in finished.stdout
    assert "every call of Python traced, 177 calls" in " ".join(finished.stdout.split())
    stats: Any = pstats.Stats(str(folder / "work.pstats"))
    ((primitive, calls, *_),) = [
        sums[:2] for key, sums in stats.stats.items() if key[2].endswith("fib")
    ]
    assert (primitive, calls) == (1, 177)
    collapsed = (folder / "work.collapsed").read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in collapsed if "fib" in line) == 177
    assert all((folder / name).stat().st_size > 100 for name in names)


@each_engine
def test_pstats_are_those_of_cprofile(way: Way) -> None:
    """Calls, those that are not recursive, and the same by caller."""
    said = told(
        way,
        """
import cProfile, os, pstats, tempfile
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n):
    if n: odd(n - 1)
def odd(n):
    if n: even(n - 1)
    if n > 2: even(n - 2)
def work():
    fib(12); even(9); odd(5)

def counts(stats):
    return sorted([key[2], list(sums[:2]), sorted([caller[2], list(of_caller[:2])]
                   for caller, of_caller in sums[4].items() if caller[2] in names)]
                  for key, sums in stats.items() if key[2] in names)

names = ("fib", "even", "odd")
theirs = cProfile.Profile()
theirs.enable()
work()
theirs.disable()
path = os.path.join(tempfile.mkdtemp(), "a.pstats")
traced(work).save(path)
print(json.dumps([counts(pstats.Stats(path).stats), counts(pstats.Stats(theirs).stats)]))
""",
    )
    ours, theirs = said
    assert ours == theirs
    assert len(ours) == 3


@each_engine
def test_a_program_runs_as_without_it(way: Way) -> None:
    finished = run(
        f"""
import os, sys, pystrobe
tracer = pystrobe.Tracer(engine={way.engine!r})
tracer.start()
def child():
    return 41 + 1
pid = os.fork()
if pid == 0:
    os._exit(child())
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.exit(7)
""",
        by=way.by,
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (7, "42\n", "")


@each_engine
def test_again_and_again(way: Way) -> None:
    said = told(
        way,
        """
def step():
    pass
counts = {traced(step).call_counts().popitem()[1] for _ in range(100)}
print(json.dumps({"counts": sorted(counts)}))
""",
    )
    assert said["counts"] == [1]


@each_engine
def test_one_at_a_time(way: Way) -> None:
    finished = run(
        f"""
import pystrobe
def step(): pass
with pystrobe.Tracer(engine={way.engine!r}) as first:
    try:
        pystrobe.Tracer(engine={way.engine!r}).start()
    except pystrobe.Error as error:
        print(error.message)
    step()
print(sum(row.calls for row in first.stats() if row.function == "step"))
""",
        by=way.by,
    )
    assert finished.returncode == 0, finished.stderr
    assert "traced in this process already" in finished.stdout
    assert finished.stdout.splitlines()[-1] == "1"


def test_the_hook_of_another_is_left_to_it() -> None:
    finished = run(
        """
import sys, pystrobe
events = []
sys.setprofile(lambda *event: events.append(event))
try:
    pystrobe.Tracer(engine="setprofile").start()
except pystrobe.Error as error:
    print(error)
print(sys.getprofile() is not None)
"""
    )
    assert finished.returncode == 0, finished.stderr
    assert "another profiler has the hook of a thread" in finished.stdout
    assert "sys.setprofile(None)" in finished.stdout
    assert finished.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize("by", own_interpreters(), ids=lambda by: by.name)
def test_auto_is_the_cheapest_that_can_tell(by: Own) -> None:
    said = answer(
        """
import json, pystrobe
def engine(**options):
    with pystrobe.Tracer(**options) as tracer:
        pass
    return tracer.engine
print(json.dumps([engine(), engine(builtins=True)]))
""",
        by=by,
    )
    assert said == (
        ["sys.monitoring", "sys.monitoring"]
        if by.version >= (3, 12)
        else [
            "frame evaluation" if has_frame_eval(by) else "PyEval_SetProfile",
            "PyEval_SetProfile",
        ]
    )


@each_engine
def test_recursion_ends_where_it_ends_without(way: Way) -> None:
    said = told(
        way,
        """
import sys
def endless():
    depth[-1] += 1
    endless()
def work():
    depth.append(0)
    with contextlib.suppress(RecursionError):
        endless()
depth = []
traced(work)   # from the same depth as
class Untraced:
    def __enter__(self): pass
    def __exit__(self, *_): pass
def untraced(work):
    with Untraced():
        work()
untraced(work)
print(json.dumps(depth))
""",
    )
    assert said[0] == said[1] > 500


@each_engine
def test_recursion_may_be_as_deep_as_without(way: Way) -> None:
    """A call of Python needs no C stack from 3.11 on, one through an evaluator of frames does."""
    said = told(
        way,
        """
import sys
def down(n):
    return n if n == 0 else down(n - 1)
sys.setrecursionlimit(10**6)
down(DEPTH)
tracer = traced(lambda: (down(DEPTH), down(3)))
print(json.dumps([found(tracer, ["down"])["down"], tracer.trouble]))
""".replace("DEPTH", "100_000" if way.by.version >= (3, 11) else "12_000"),
    )
    depth = 100_000 if way.by.version >= (3, 11) else 12_000
    assert said == [depth + 1 + 4, ""]


@each_but_frame_eval
def test_the_hook_being_taken_away_is_told(way: Way) -> None:
    take = {
        "setprofile": "import sys; sys.setprofile(None)",
        "monitoring": "import sys; [sys.monitoring.set_events(i, 0) for i in (2, 3, 4)"
        " if sys.monitoring.get_tool(i)]",
    }[way.engine]
    said = told(way, f"print(json.dumps(traced(lambda: exec({take!r})).trouble))")
    assert "missing" in said


@each_monitoring
def test_nothing_is_told_any_more_once_the_tool_id_was_freed(way: Way) -> None:
    said = told(
        way,
        """
import sys
def free():
    for tool in (2, 3, 4):
        if sys.monitoring.get_tool(tool):
            sys.monitoring.free_tool_id(tool)
traced(free)
events = [sys.monitoring.get_tool(tool) for tool in range(6)]
for tool in (2, 3, 4):
    sys.monitoring.use_tool_id(tool, "looks")
    events.append(sys.monitoring.get_events(tool))
    sys.monitoring.free_tool_id(tool)
ENGINE = "setprofile"
def step(): pass
print(json.dumps([events, found(traced(step), ["step"])]))
""",
    )
    assert said == [[None] * 6 + [0] * 3, {"step": 1}]


@each_monitoring
def test_a_hook_that_could_not_be_taken_away_tells_nothing(way: Way) -> None:
    """Another thread has a hook of its own when the first trace ends."""
    said = told(
        way,
        """
import sys
def step(): pass
def worker(first, then, event):
    event.set()
    first.wait()
    step()
    then.wait()
    step()
def other():
    sys.setprofile(lambda *event: None)
    hooked.set()
    then.wait()
first, then, hooked, ready = (threading.Event() for _ in range(4))
with pystrobe.Tracer(engine="setprofile"):
    one = threading.Thread(target=worker, args=(first, then, ready)); one.start(); ready.wait()
    two = threading.Thread(target=other); two.start(); hooked.wait()
def work():
    first.set()
    then.set()
    one.join()
two_tracer = traced(work)
print(json.dumps(found(two_tracer, ["step"])))
""",
    )
    assert said == {"step": 2}


FILTERED = """
import fnmatch
def leaf():
    pass
def skipped(n):
    leaf()
    if n:
        skipped(n - 1)
def generator(n):
    for i in range(n):
        leaf()
        yield i
def fails(n):
    if n:
        fails(n - 1)
    raise ValueError
def work():
    skipped(4)
    list(generator(3))
    fnmatch.fnmatch("a", "b")
    with contextlib.suppress(ValueError):
        fails(3)
"""


@each_engine
def test_what_is_excluded_counts_for_its_caller(way: Way) -> None:
    said = told(
        way,
        FILTERED
        + """
names = ["work", "leaf", "skipped", "generator", "fails", "fnmatch"]
def counts(**options):
    tracer = traced(work, **options)
    callers = {row.function: sorted(one.function for one in row.callers)
               for row in tracer.stats()}
    return found(tracer, names), callers.get("leaf"), tracer._tracer.facts()["unmatched"]
print(json.dumps([
    counts(exclude=["skipped", "gen*", "fail?"]),
    counts(include=["work", "leaf"]),
    counts(stdlib=False),
    counts(exclude=["<string>"]),
    counts(),
]))
""",
    )
    everything = {"work": 1, "leaf": 8, "skipped": 5, "generator": 1, "fails": 4, "fnmatch": 1}
    without = {**everything, "skipped": 0, "generator": 0, "fails": 0}
    assert said == [
        [without, ["work"], 0],
        [{**without, "fnmatch": 0}, ["work"], 0],
        [{**everything, "fnmatch": 0}, ["generator", "skipped"], 0],
        [{**dict.fromkeys(everything, 0), "fnmatch": 1}, None, 0],
        [everything, ["generator", "skipped"], 0],
    ]


@each_engine
@pytest.mark.chance
def test_the_cost_is_told(way: Way) -> None:
    said = told(
        way,
        """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
tracer = traced(lambda: fib(15))
quality = tracer.profile().report().quality
print(json.dumps([tracer.ns_per_call, quality.held_ns / quality.taken, str(tracer.profile())]))
""",
    )
    per_call, by_quality, text = said
    assert 1 < per_call < 20_000
    assert by_quality == pytest.approx(per_call, rel=0.01, abs=1)
    assert "that took about" in " ".join(text.split())


@each_engine
@pytest.mark.chance
def test_times_can_be_corrected_for_the_cost(way: Way) -> None:
    said = told(
        way,
        """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def alone():
    begin = time.perf_counter()
    fib(20)
    return time.perf_counter() - begin
seconds = min(alone() for _ in range(15))
tracers = [traced(lambda: fib(20)) for _ in range(15)]
def least(**options):
    return min(row.self for tracer in tracers for row in tracer.stats(**options)
               if row.function == "fib")
print(json.dumps([seconds, least(), least(corrected=True)]))
""",
    )
    seconds, told_time, corrected = said
    assert told_time > seconds
    assert abs(corrected - seconds) < abs(told_time - seconds)
    # There this hook slows every instruction down, not calls alone.
    if way.engine != "setprofile" or way.by.version[:2] not in ((3, 10), (3, 11)):
        assert corrected == pytest.approx(seconds, rel=0.5)


# Parts of CPython's own tests that have much to do with calls, and little with time and machine.
SUITE = [
    *("test_generators", "test_yield_from", "test_pep380", "test_coroutines", "test_asyncgen"),
    *("test_exceptions", "test_raise", "test_with", "test_contextlib", "test_decorators"),
    *("test_functools", "test_descr", "test_super", "test_scope", "test_sort", "test_call"),
    *("test_iter", "test_itertools", "test_richcmp", "test_class", "test_thread", "test_weakref"),
]
RUN_SUITE = """
import importlib.util, sys
names = [name for name in {names!r} if importlib.util.find_spec("test." + name)]
if not names:
    sys.exit(99)
sys.argv = ["test", "-q", *names]
from test.libregrtest.main import main
if {engine!r}:
    import pystrobe
    pystrobe.Tracer(engine={engine!r}).start()
main()
"""


def outcome(way: Way, engine: str) -> tuple[int, list[str]]:
    """Exit status, and which of the tests failed."""
    done = run(RUN_SUITE.format(names=SUITE, engine=engine), by=way.by)
    failed = re.findall(r"^(?:FAIL|ERROR): (\S+)", done.stdout + done.stderr, re.MULTILINE)
    return done.returncode, sorted(set(failed))


@pytest.mark.slow
@pytest.mark.matrix
@each_engine
def test_the_tests_of_the_interpreter_pass_as_without(way: Way) -> None:
    alone = outcome(way, "")
    if alone[0] == 99:
        pytest.skip("this interpreter came without its tests")
    assert alone == (0, [])
    assert outcome(way, way.engine) == alone


@each_engine
def test_enable_and_disable(way: Way) -> None:
    finished = run(
        f"""
import pystrobe
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
pystrobe.enable(mode="trace", engine={way.engine!r})
fib(10)
print(pystrobe.disable().report().quality.taken)
try:
    pystrobe.disable()
except pystrobe.Error as error:
    print(error)
""",
        by=way.by,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("177\nno profiler runs")


@pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine != "setprofile"], ids=name_of_way
)
def test_beside_cprofile_where_hooks_are_many(way: Way) -> None:
    said = told(
        way,
        """
import cProfile, pstats
def step(): pass
def work():
    for _ in range(10): step()
theirs = cProfile.Profile()
theirs.enable()
tracer = traced(work)
theirs.disable()
stats = pstats.Stats(theirs).stats
print(json.dumps([found(tracer, ["step"])["step"], tracer.trouble,
                  sum(sums[1] for key, sums in stats.items() if key[2] == "step")]))
""",
    )
    assert said == [10, "", 10]


CORES = ["ctrace", "pytrace", *(["sysmon"] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("core", CORES)
def test_coverage_sees_what_it_sees_without(core: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys
def step(n):
    if n > 5:
        return 1
    return 2
def work():
    for n in range(10):
        step(n)
if sys.argv[1:]:
    import pystrobe
    with pystrobe.Tracer() as tracer:
        work()
    print(tracer.call_counts().get("3:step"), repr(tracer.trouble))
else:
    work()
"""
    )

    def covered(*arguments: str) -> tuple[str, list[int]]:
        run_it = [sys.executable, "-m", "coverage"]
        environment = {**os.environ, "COVERAGE_CORE": core}
        options = {"cwd": tmp_path, "env": environment, "text": True, "check": True}
        said: Any = subprocess.run(
            [*run_it, "run", "program.py", *arguments], stdout=subprocess.PIPE, **options
        )
        subprocess.run([*run_it, "json", "-q", "-o", "a.json"], **options)  # type: ignore[call-overload]
        files = json.loads((tmp_path / "a.json").read_text())["files"]
        return said.stdout, files["program.py"]["executed_lines"]

    (_, alone), (said, traced) = covered(), covered("traced")
    assert said.strip() == "10 ''"
    # But for the lines that only one of them has.
    assert [line for line in traced if line < 11] == [line for line in alone if line < 11]


@each_engine
def test_finalizers_run_while_a_function_is_looked_at(way: Way) -> None:
    """Names that are no text have an exception made, and to make one may collect garbage."""
    said = told(
        way,
        """
import gc
class Garbage:
    def __init__(self):
        self.me = self
        COUNTS["__init__"] += 1
    def __del__(self):
        COUNTS["__del__"] += 1
def make(i):
    code = compile(f"def f{i}(): pass", "made", "exec")
    space = {}
    exec(code, space)
    function = space[f"f{i}"]
    name = f"g\\udcff{i}"
    extra = {"co_qualname": name} if hasattr(function.__code__, "co_qualname") else {}
    function.__code__ = function.__code__.replace(co_name=name, **extra)
    return function
functions = [make(i) for i in range(300)]
def work():
    gc.set_threshold(1)
    for function in functions:
        Garbage()
        function()
    gc.set_threshold(0)
    gc.collect()
tracer = traced(work, stdlib=False)
true = dict(COUNTS)
print(json.dumps([found(tracer, ["__init__", "__del__"]), true]))
""",
    )
    counts, true = said
    assert counts == true
    assert counts["__init__"] == 300


@each_engine
def test_paths_from_here_are_patterns(way: Way) -> None:
    said = told(
        way,
        """
import os, sys, tempfile
os.chdir(tempfile.mkdtemp())
os.mkdir("part")
for name in ("part/inside_it.py", "outside_it.py"):
    with open(name, "w") as file:
        file.write("def step(): pass")
sys.path[:0] = [os.path.abspath("part"), os.getcwd()]
import inside_it, outside_it
tracer = traced(lambda: (inside_it.step(), outside_it.step()), include=["part"])
print(json.dumps([os.path.basename(row.file) for row in tracer.stats()]))
""",
    )
    assert said == ["inside_it.py"]


def test_wrong_use_is_told() -> None:
    code = """
import pystrobe
try:
    pystrobe.Tracer(engine="fast")
except ValueError as error:
    print(error)
try:
    pystrobe.Tracer(include="a.py")
except ValueError as error:
    print(error)
try:
    pystrobe.Tracer().stats()
except pystrobe.Error as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "no such engine: 'fast'" in said.stdout
    assert "one of auto, setprofile, frame-eval, monitoring" in said.stdout
    assert "include=['a.py']" in said.stdout
    assert "there is nothing yet" in said.stdout
