# SPDX-License-Identifier: Apache-2.0
"""A traced program runs as it does without, beside whatever else has a hook."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import coverage
import pytest
from call_tracing import (
    Way,
    each_but_frame_eval,
    each_engine,
    each_monitoring,
    name_of_way,
    told,
    ways,
)
from own_interpreters import THIS, Own, own_interpreters
from own_program import run

pytestmark = pytest.mark.beside_others


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
    try:
        first.stats()
    except pystrobe.Error as error:
        print(error.message)
    step()
try:
    first.start()
except pystrobe.Error as error:
    print(error.message)
print(sum(row.calls for row in first.stats() if row.function == "step"))
""",
        by=way.by,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[:3] == [
        "calls are traced in this process already",
        "the tracer runs still",
        "this tracer has had its trace",
    ]
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


@each_engine
def test_the_limit_of_the_stack_may_be_lowered_meanwhile(way: Way) -> None:
    if way.by.version < (3, 11):
        pytest.skip("a call of Python needs C stack there in any case")
    said = told(
        way,
        """
import resource, sys
def down(n):
    return n if n == 0 else down(n - 1)
sys.setrecursionlimit(10**6)
def lower():
    down(3)
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, most))
    down(50_000)
tracer = traced(lower)
print(json.dumps([found(tracer, ["down"])["down"], tracer.trouble]))
""",
    )
    assert said == [4 + 50_001, ""]


@each_but_frame_eval
def test_the_hook_being_taken_away_is_told(way: Way) -> None:
    ours = "for tool in (2, 3, 4): sys.monitoring.get_tool(tool) == 'pystrobe' and sys.monitoring."
    takes = {
        "setprofile": ["sys.setprofile(None)"],
        "monitoring": [
            f"{ours}set_events(tool, 0)",
            f"{ours}register_callback(tool, sys.monitoring.events.PY_RETURN, None)",
        ],
    }[way.engine]
    for take in takes:
        said = told(way, f"import sys\nprint(json.dumps(traced(lambda: exec({take!r})).trouble))")
        assert "missing" in said, take


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


# Parts of CPython's own tests that have much to do with calls, and little with time and machine.
SUITE = [
    *("test_generators", "test_yield_from", "test_pep380", "test_coroutines", "test_asyncgen"),
    *("test_exceptions", "test_raise", "test_with", "test_contextlib", "test_decorators"),
    *("test_functools", "test_descr", "test_super", "test_scope", "test_sort", "test_call"),
    *("test_iter", "test_itertools", "test_richcmp", "test_class", "test_thread", "test_weakref"),
]


RUN_SUITE = """
import importlib.util, sys
there = importlib.util.find_spec("test") is not None
names = [name for name in {names!r} if there and importlib.util.find_spec("test." + name)]
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


CORES = {"ctrace": "CTracer", "pytrace": "PyTracer", "sysmon": "SysMonitor"}


def ways_of_coverage() -> list[tuple[Own, str]]:
    """Others can import the Python that it is made of, but not its tracer of C."""
    found = [(THIS, "ctrace"), (THIS, "pytrace")]
    with_sysmon = [by for by in own_interpreters() if by.version >= (3, 12) and not by.root]
    return [*found, *((by, "sysmon") for by in with_sysmon)]


@pytest.mark.parametrize(
    ("by", "core"), ways_of_coverage(), ids=[f"{by.name}-{core}" for by, core in ways_of_coverage()]
)
def test_coverage_sees_what_it_sees_without(by: Own, core: str, tmp_path: Path) -> None:
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
    import coverage
    print(coverage.Coverage.current()._collector.tracer_name())
else:
    work()
"""
    )

    places = [str(tmp_path / "packages"), by.environment().get("PYTHONPATH", "")]
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "coverage").symlink_to(Path(coverage.__file__).parent)

    def covered(*arguments: str) -> tuple[str, list[int]]:
        run_it = [*by.command, "-m", "coverage"]
        environment = {**by.environment(), "COVERAGE_CORE": core}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        options = {"cwd": tmp_path, "env": environment, "text": True, "check": True}
        said: Any = subprocess.run(
            [*run_it, "run", "program.py", *arguments], stdout=subprocess.PIPE, **options
        )
        subprocess.run([*run_it, "json", "-q", "-o", "a.json"], **options)  # type: ignore[call-overload]
        files = json.loads((tmp_path / "a.json").read_text())["files"]
        return said.stdout, files["program.py"]["executed_lines"]

    (_, alone), (said, traced) = covered(), covered("traced")
    assert said.split() == ["10", "''", CORES[core]]
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
