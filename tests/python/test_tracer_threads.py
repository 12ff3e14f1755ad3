# SPDX-License-Identifier: Apache-2.0
"""Where threads are when a trace begins and ends, and exceptions that go through traced frames."""

from __future__ import annotations

import pytest
from call_tracing import Way, each_engine, each_set_profile, name_of_way, told, ways
from own_program import run

pytestmark = pytest.mark.beside_others


@each_engine
def test_another_thread_may_end_it_while_others_are_deep_in_calls(way: Way) -> None:
    """What they had begun is in it, with the time until then; nothing is that comes later."""
    said = told(
        way,
        """
def down(n, deep, go_on):
    if n:
        return 1 + down(n - 1, deep, go_on)
    deep.wait()
    go_on.wait()
    later()
    return 0
def later():
    pass
def worker(i):
    results[i] = down(60, deep, go_on)
def task(n):
    yield from task(n - 1) if n else waits()
def waits():
    yield
    deep.wait()
    go_on.wait()
    later()
    yield
def in_generators():
    results[4] = sum(1 for _ in task(20))
def stopper(tracer):
    deep.wait()
    tracer.stop()
    go_on.set()

def rounds():
    global deep, go_on, results
    deep, go_on, results = threading.Barrier(6), threading.Event(), [None] * 5
    tracer = pystrobe.Tracer(engine=ENGINE)
    work = [threading.Thread(target=worker, args=(i,)) for i in range(4)]
    work.append(threading.Thread(target=in_generators))
    work.append(threading.Thread(target=stopper, args=(tracer,)))
    tracer.start()
    for thread in work: thread.start()
    for thread in work: thread.join()
    return [found(tracer, ["down", "task", "waits", "later"]), results, tracer.trouble]
print(json.dumps([rounds() for _ in range(5)]))
""",
    )
    counts = {"down": 4 * 61, "task": 21, "waits": 1, "later": 0}
    assert said == [[counts, [60, 60, 60, 60, 2], ""]] * 5


@each_engine
@pytest.mark.alone
def test_a_thread_that_has_the_place_of_an_ended_one_begins_when_it_does(way: Way) -> None:
    said = told(
        way,
        """
import time
go = threading.Event()
before = [threading.Thread(target=go.wait) for _ in range(4)]
for thread in before: thread.start()
idents = {thread.ident for thread in before}
with pystrobe.Tracer(engine=ENGINE) as tracer:
    go.set()
    for thread in before: thread.join()
    time.sleep(1)
    after = [threading.Thread(target=int, name="after") for _ in range(4)]
    for thread in after: thread.start()
    for thread in after: thread.join()
has_place = any(thread.ident in idents for thread in after)
totals = [row.total for one in tracer.threads() if one.name == "after" for row in one.functions]
print(json.dumps([has_place, max(totals)]))
""",
    )
    has_place, longest = said
    assert has_place, "nothing was tried"
    assert longest < 0.9


@each_engine
def test_daemon_threads_may_call_until_the_interpreter_is_gone(way: Way) -> None:
    for timeline in (False, True):
        finished = run(
            f"""
import threading, pystrobe
def step(n):
    return n and step(n - 1)
def numbers():
    for n in range(5):
        yield step(n)
def forever(ready):
    while True:
        list(numbers())
        ready.set()
pystrobe.Tracer(engine={way.engine!r}, timeline={timeline}).start()
threads = [threading.Event() for _ in range(4)]
for ready in threads: threading.Thread(target=forever, args=(ready,), daemon=True).start()
for ready in threads: ready.wait()
print("done")
""",
            by=way.by,
        )
        assert (finished.returncode, finished.stdout, finished.stderr) == (0, "done\n", "")


EXCEPTIONS = """
import sys, traceback
class Lost(Exception): pass
LOST, CAUSE = Lost("lost"), KeyError("cause")
def raises(error):
    raise error
def passes(error):
    value = raises(error)
    return value
def replaces():
    try:
        passes(CAUSE)
    except KeyError:
        passes(LOST)
def explains():
    try:
        passes(CAUSE)
    except KeyError as error:
        raise LOST from error
def cleans():
    try:
        passes(LOST)
    finally:
        helper()
def helper():
    with contextlib.suppress(ValueError):
        passes(ValueError())
def steps():
    try:
        yield 1
    finally:
        helper()
def thrown():
    generator = steps()
    next(generator)
    generator.throw(LOST)
def stops():
    def inner():
        yield
        passes(LOST)
    yield from inner()
async def waits():
    await asyncio.sleep(0)
    passes(LOST)
def by_c():
    sorted([2, 1], key=lambda _: passes(LOST))
class Box:
    def __del__(self): helper()
    def __enter__(self): return self
    def __exit__(self, kind, value, trace):
        Box.seen = value is LOST, [frame.name for frame in traceback.extract_tb(trace)]
def with_box():
    with Box():
        passes(LOST)

def told_of(work):
    LOST.__traceback__ = LOST.__context__ = LOST.__cause__ = CAUSE.__traceback__ = None
    LOST.__suppress_context__ = False
    try:
        work()
    except Lost as error:
        seen = error
    inside = sys.exc_info()[0] is None
    frames = [(frame.name, frame.lineno) for frame in traceback.extract_tb(seen.__traceback__)]
    return [seen is LOST, frames, seen.__context__ is CAUSE, seen.__cause__ is CAUSE,
            seen.__suppress_context__, inside, len(traceback.extract_tb(CAUSE.__traceback__))]

WORKS = [lambda: passes(LOST), replaces, explains, cleans, thrown, lambda: list(stops()),
         lambda: asyncio.run(waits()), by_c, with_box]
def all_told():
    return [told_of(work) for work in WORKS] + [Box.seen]
"""


@each_engine
def test_exceptions_pass_as_without_it(way: Way) -> None:
    alone, traced = told(
        way,
        f"""{EXCEPTIONS}
results = [all_told()]
tracer = traced(lambda: results.append(all_told()))
assert tracer.call_counts()
print(json.dumps(results))
""",
    )
    assert traced == alone
    assert all(is_same for is_same, *_ in alone)
    assert [names[-1][0] for _, names, *_ in alone[:-1]][:2] == ["raises", "raises"]
    assert [one[2] for one in alone[1:3]] == [True, True]


@each_engine
def test_threads_that_have_ended_keep_no_room_for_calls(way: Way) -> None:
    said = told(
        way,
        """
def mappings():
    with open("/proc/self/maps") as lines:
        return sum(1 for _ in lines)
def run_threads(count):
    for _ in range(count):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
with pystrobe.Tracer(engine=ENGINE) as tracer:
    run_threads(10)
    before = mappings()
    run_threads(300)
    after = mappings()
print(json.dumps([before, after, len(tracer.threads())]))
""",
    )
    before, after, threads = said
    assert threads > 300
    assert after < before + 50


@each_engine
def test_daemon_threads_call_until_the_program_ends(way: Way) -> None:
    program = f"""
import threading, time, pystrobe
tracer = pystrobe.Tracer(engine={way.engine!r})
def leaf(): pass
def work():
    while True:
        for _ in range(100): leaf()
        time.sleep(0)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
tracer.start()
time.sleep(0.05)
"""
    # Without the GIL one in six crashed, when the hook was taken from threads that were calling it.
    for end in ("", "tracer.stop(); time.sleep(0.05)") * (6 if way.by.name.endswith("t") else 1):
        finished = run(program + end, by=way.by)
        assert finished.returncode == 0, finished.stderr


@each_engine
def test_a_trace_that_begins_as_the_program_ends_ends_with_it(way: Way) -> None:
    finished = run(
        f"""
import atexit, pystrobe
@atexit.register
def late():
    pystrobe.Tracer(engine={way.engine!r}).start()
""",
        by=way.by,
    )
    assert (finished.returncode, finished.stderr) == (0, "")


@each_set_profile
@pytest.mark.alone
def test_a_trace_ends_in_a_thread_whose_hook_is_gone(way: Way) -> None:
    said = told(
        way,
        """
import sys, time
ends = False
def leaf(): pass
def work():
    while not ends:
        for _ in range(100): leaf()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
counts = []
for _ in range(20):
    with pystrobe.Tracer(engine=ENGINE) as tracer:
        time.sleep(0.005)
        sys.setprofile(None)
    counts.append(sum(row.calls for row in tracer.stats() if row.function == "leaf"))
ends = True
for thread in threads: thread.join()
print(json.dumps(counts))
""",
    )
    assert len(said) == 20
    assert min(said) > 0


@pytest.mark.parametrize(
    "way", [way for way in ways() if way.by.version < (3, 12)], ids=name_of_way
)
def test_a_finalizer_does_not_run_in_the_middle_of_an_event(way: Way) -> None:
    """Where another thread could end the trace meanwhile. Garbage is collected after so and so many
    objects, of which the one in the middle of a first call could be the last."""
    said = told(
        way,
        """
import gc, time
stops = threading.Event()
class Slow:
    def __del__(self):
        stops.set()
        time.sleep(0.1)
def trial(count):
    names = {}
    exec("def fresh(): return 1", names)
    fresh = names["fresh"]
    goes = threading.Event()
    def work():
        goes.wait()
        kept = [[] for _ in range(200)]  # so that none is at hand that was given back
        slow = Slow()
        slow.itself = slow
        del slow
        gc.set_threshold(gc.get_count()[0] + count, 1000000, 1000000)
        gc.enable()
        fresh()
        gc.disable()
        stops.set()
        for _ in range(100): fresh()
    gc.collect()
    stops.clear()
    thread = threading.Thread(target=work)
    thread.start()
    with pystrobe.Tracer(engine=ENGINE, exclude=["nosuch*"]) as tracer:
        goes.set()
        stops.wait()
    thread.join()
    return sum(row.calls for row in tracer.stats() if row.function == "fresh")
gc.disable()
print(json.dumps([trial(count) for count in range(-2, 12)]))
""",
    )
    assert len(said) == 14


@pytest.mark.parametrize(
    "way",
    # Where opcodes have their names in that module.
    [way for way in ways() if way.engine == "setprofile" and way.by.version >= (3, 13)],
    ids=name_of_way,
)
def test_after_a_trace_no_instruction_tells_of_calls(way: Way) -> None:
    """Once all threads have called something, and so given the hook back."""
    said = told(
        way,
        """
import time
from _opcode_metadata import opmap
names = {code: name for name, code in opmap.items()}
def leaf():
    return 1
def told_of():
    return [names.get(code, "") for code in leaf.__code__._co_code_adaptive[::2]]
def is_instrumented():
    return any(name.startswith("INSTRUMENTED") for name in told_of())
goes_on, calls = True, collections.Counter()
def busy(number):
    while goes_on:
        leaf()
        calls[number] += 1
threads = [threading.Thread(target=busy, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
with pystrobe.Tracer(engine=ENGINE):
    before = calls.copy()
    while any(calls[number] == before[number] for number in range(4)): time.sleep(0.001)
    was = is_instrumented()
until = time.monotonic() + 30
while is_instrumented() and time.monotonic() < until: time.sleep(0.01)
still = is_instrumented()
goes_on = False
for thread in threads: thread.join()
print(json.dumps([was, still]))
""",
    )
    assert said == [True, False]
