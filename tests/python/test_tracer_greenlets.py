# SPDX-License-Identifier: Apache-2.0
"""Calls of greenlets: each has a stack of its own, whichever of them its thread is on."""

from __future__ import annotations

import pytest
from call_tracing import Way, name_of_way, told, ways
from own_program import has_module

pytestmark = pytest.mark.beside_others

each_with_greenlets = pytest.mark.parametrize(
    "way", [way for way in ways() if has_module(way.by, "greenlet")], ids=name_of_way
)

#: How often who was called by whom, with no name where nobody traced did.
CALLERS = """
def callers(tracer, names):
    found = collections.Counter()
    for row in tracer.stats():
        for caller in row.callers if row.function in names else ():
            found[f"{caller.function.rpartition('.')[2]}>{row.function}"] += caller.calls
    return {edge: calls for edge, calls in found.items() if calls}
def rows(tracer):
    return {row.function: row for row in tracer.stats()}
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass
"""


#: As chance will have it greenlets call, switch, throw, end and are forgotten, in functions that
#: know who has called them.
BY_CHANCE = """
TEXT = '''
def {name}(run, caller, depth):
    run.note(caller, "{name}", depth)
    for _ in range(run.chance.randrange(4)):
        how = run.chance.random()
        if how < 0.45 and depth < 7:
            run.pick()(run, "{name}", depth + 1)
        elif how < 0.6:
            try:
                run.pick()(run, "{name}", depth + 1)
            except KeyError:
                pass
        elif how < 0.65:
            raise KeyError
        elif how < 0.8 and run.budget:
            run.budget -= 1
            one = greenlet.greenlet(run.pick())
            run.live.append(one)
            one.switch(run, "", 0)
        elif run.live:
            one = run.chance.choice(run.live)
            if how > 0.97:
                run.live.remove(one)  # killed, where nobody else has it
            elif one:
                one.throw(KeyError) if how > 0.93 else one.switch()
'''
NAMES = [f"function{i}" for i in range(5)]
for name in NAMES:
    exec(TEXT.format(name=name))
FUNCTIONS = [globals()[name] for name in NAMES]
class Run:
    def __init__(self, seed):
        self.chance, self.live = random.Random(seed), []
        self.edges, self.budget = collections.Counter(), 100
    def pick(self):
        return self.chance.choice(FUNCTIONS)
    def note(self, caller, name, depth):
        if depth < MOST_DEPTH:
            self.edges[f"{caller}>{name}"] += 1
    def work(self):
        global greenlet
        import greenlet
        while self.budget:
            try:
                function0(self, TOP, 0)
            except KeyError:
                pass
        for one in self.live[::2]:
            try:
                if one: one.throw(KeyError)
            except KeyError:
                pass
def of_seed(seed):
    runs = [Run(3 * seed + i) for i in range(3)]
    def work():
        threads = [threading.Thread(target=run.work) for run in runs[1:]]
        for thread in threads: thread.start()
        runs[0].work()
        for thread in threads: thread.join()
    tracer = traced(work, **OPTIONS)
    true = sum((run.edges for run in runs), collections.Counter())
    return callers(tracer, NAMES), true, tracer._tracer.facts()["unmatched"]
print(json.dumps([of_seed(seed) for seed in range(2)]))
"""


@each_with_greenlets
@pytest.mark.parametrize(
    "options",
    [{}, {"builtins": True}, {"timeline": True}, {"max_depth": 4, "include": ["function*"]}],
    ids=lambda options: "".join(options) or "plain",
)
def test_callers_are_those_of_each_greenlet(way: Way, options: dict[str, object]) -> None:
    """In three threads, which load greenlets when they are traced already."""
    if "builtins" in options and way.engine == "frame-eval":
        pytest.skip("frame evaluation tells of no functions of C")
    top, most = ("", 4) if "include" in options else ("work", 99)
    said = told(
        way, f"{CALLERS}\nTOP, MOST_DEPTH, OPTIONS = {top!r}, {most}, {options!r}\n{BY_CHANCE}"
    )
    for found, true, unmatched in said:
        assert found == true
        assert unmatched == 0
        assert sum(true.values()) > 300
        assert len(true) >= 20


@each_with_greenlets
@pytest.mark.alone
def test_a_greenlet_has_the_time_that_it_is_on_the_stack(way: Way) -> None:
    """From one switch to the next, also where nothing is called between."""
    said = told(
        way,
        f"""{CALLERS}
import greenlet
main = greenlet.getcurrent()
def waits():
    spin(0.05)
    main.switch()
    time.sleep(0.05)
    main.switch()
def work():
    one = greenlet.greenlet(waits)
    for _ in range(2):
        one.switch()
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end: pass
    begin = time.perf_counter()
    one.switch()
tracer = traced(work)
print(json.dumps({{name: [row.self, row.total, row.total_cpu] for name, row in rows(tracer).items()
                   if name in ("waits", "work")}}))
""",
    )
    own, total, cpu = said["waits"]
    assert 0.05 <= own < 0.15
    assert 0.1 <= total < 0.2
    assert cpu < total - 0.04
    own, total, cpu = said["work"]
    assert own >= 0.4
    assert 0.4 <= total < 0.6


@each_with_greenlets
def test_one_that_began_before_is_running(way: Way) -> None:
    said = told(
        way,
        f"""{CALLERS}
import greenlet
def outer(): inner()
def inner():
    greenlet.getcurrent().parent.switch()
    helper()
    greenlet.getcurrent().parent.switch()
def helper(): pass
one = greenlet.greenlet(outer)
one.switch()
def work():
    helper()
    one.switch()
tracer = traced(work)
one.switch()
print(json.dumps([callers(tracer, ["helper"]), tracer._tracer.facts()["unmatched"],
    {{name: [row.calls, row.running] for name, row in rows(tracer).items()
      if name in ("outer", "inner")}}]))
""",
    )
    assert said == [{"work>helper": 1, "inner>helper": 1}, 0, {"outer": [0, 1], "inner": [0, 1]}]


@each_with_greenlets
def test_who_else_traces_greenlets_is_called(way: Way) -> None:
    """What was there before is there again after; what is set meanwhile stays."""
    said = told(
        way,
        f"""{CALLERS}
import greenlet
seen = []
def theirs(event, arguments):
    seen.append(event)
    if before:
        before(event, arguments)
before = None
def work():
    greenlet.greenlet(spin).switch(0)
def there():
    return greenlet.gettrace() is theirs
greenlet.settrace(theirs)
traced(work)
first = [len(seen), there()]
greenlet.settrace(None)
def sets():
    global before
    work()
    before = greenlet.settrace(theirs)
    work()
traced(sets)
second = [before is not None, len(seen), there()]
work()
third = [len(seen), there()]
greenlet.settrace(None)
def other():
    work(); ready.set(); go.wait()
    left.append(greenlet.gettrace() is not None)
    work()
    left.append(greenlet.gettrace() is not None)
left, ready, go = [], threading.Event(), threading.Event()
thread = threading.Thread(target=other)
traced(lambda: (thread.start(), ready.wait()))
go.set()
thread.join()
print(json.dumps([first, second, third, left]))
""",
    )
    # A switch to it, and one back. In other threads ours goes with the first switch.
    assert said == [[2, True], [True, 4, True], [6, True], [True, False]]
