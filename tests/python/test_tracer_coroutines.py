# SPDX-License-Identifier: Apache-2.0
"""How long calls of coroutines last, all that they wait included."""

from __future__ import annotations

from call_tracing import Way, each_engine, told

LIVES = """
import time
def lives(tracer):
    return {row.function: [row.calls, row.finished, row.lifetime, row.total]
            for row in tracer.stats()}
"""


@each_engine
def test_a_coroutine_lives_from_its_first_step_to_its_end(way: Way) -> None:
    said, truth = told(
        way,
        f"""{LIVES}
spans = collections.Counter()
async def nap(seconds):
    begin = time.perf_counter()
    await asyncio.sleep(seconds)
    spans["nap"] += time.perf_counter() - begin
async def outer(n):
    begin = time.perf_counter()
    for _ in range(n):
        await nap(0.01)
    spans["outer"] += time.perf_counter() - begin
async def unawaited():
    pass
def generator():
    yield from range(3)
async def main():
    await asyncio.gather(nap(0.05), nap(0.1), outer(3))
    list(generator())
    unawaited().close()
tracer = traced(lambda: asyncio.run(main()))
print(json.dumps([lives(tracer), spans]))
""",
    )
    assert {name: said[name][:2] for name in ("nap", "outer", "main", "generator")} == {
        **{"nap": [5, 5], "outer": [1, 1], "main": [1, 1], "generator": [1, 0]},
    }
    for name in ("nap", "outer"):
        # Begins a little before, and ends a little after it looks at the clock.
        assert truth[name] <= said[name][2] < truth[name] + 0.1, name
        assert said[name][3] < said[name][2] / 2, name
    assert said["main"][2] >= 0.1
    assert said["generator"][2] == 0
    assert said.get("unawaited", [0, 0])[:2] == [0, 0]


@each_engine
def test_however_it_ends_it_has_lived(way: Way) -> None:
    said = told(
        way,
        f"""{LIVES}
async def fails():
    await asyncio.sleep(0.01)
    raise KeyError
async def cancelled():
    await asyncio.sleep(60)
async def closed():
    with contextlib.suppress(GeneratorExit):
        await Forever()
async def at_once():
    pass
class Forever:
    def __await__(self):
        while True:
            yield
async def main():
    one = asyncio.ensure_future(cancelled())
    with contextlib.suppress(KeyError):
        await fails()
    one.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await one
    await at_once()
    waits = closed()
    waits.send(None)
    waits.close()
print(json.dumps(lives(traced(lambda: asyncio.run(main())))))
""",
    )
    names = ("fails", "cancelled", "closed", "at_once", "main")
    assert {name: said[name][:2] for name in names} == {name: [1, 1] for name in names}
    assert said["fails"][2] >= 0.01
    assert said["cancelled"][2] > 0


@each_engine
def test_one_that_began_before_or_goes_on_after_has_not_finished(way: Way) -> None:
    said = told(
        way,
        f"""{LIVES}
class Once:
    def __await__(self):
        yield
async def waits():
    await Once()
async def within():
    await Once()
def step(one):
    with contextlib.suppress(StopIteration):
        one.send(None)
before, after, reused = waits(), waits(), [within() for _ in range(50)]
step(before)
def work():
    step(before)
    step(after)
    for one in reused: step(one)
    for one in reversed(reused): step(one)
tracer = traced(work)
step(after)
print(json.dumps(lives(tracer)))
""",
    )
    assert said["waits"][:3] == [1, 0, 0]
    assert said["within"][:2] == [50, 50]
