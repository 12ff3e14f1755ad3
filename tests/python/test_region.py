# SPDX-License-Identifier: Apache-2.0
"""Parts of a program that it names: where they stand in what is recorded."""

from __future__ import annotations

import _thread
import json
import queue
import re
import subprocess
import sys
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from readers import pprof

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")

BEGIN = """
import asyncio, contextlib, json, threading, time, pystrobe
from collections import Counter

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def regions(stack):
    return "/".join(f.function for f in stack.frames if f.file == "<region>")

def shares(profile):
    told = Counter()
    for stack in profile.stacks():
        names = [f.function for f in stack.frames]
        if "spin" in names:
            told[regions(stack)] += stack.self.wall_ns or stack.self.cpu_ns
    total = sum(told.values())
    return {name: 100 * ns / total for name, ns in told.items()}
"""

MODES = pytest.mark.parametrize("mode", ["cpu", "wall", "native"])


def answer(mode: str, code: str, end: str = "shares(profile)") -> Any:
    """What `end` is after `code` ran, sampled; whose Profiler it does not name."""
    options = {"cpu": '"cpu"', "wall": '"wall"', "native": '"cpu", native=True'}[mode]
    body = "\n".join("    " + line for line in code.strip().splitlines())
    program = f"""{BEGIN}
def main():
{body}

with pystrobe.Profiler(mode={options}, rate=1000) as profiler:
    main()
profile = profiler.profile
print(json.dumps({end}))
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def near(**expected: float) -> Any:
    names = {name.replace("__", "/").replace("none", ""): share for name, share in expected.items()}
    return pytest.approx(names, abs=4)


@pytest.mark.chance
@MODES
def test_what_a_block_calls_is_in_its_region(mode: str) -> None:
    told = answer(
        mode,
        """
for _ in range(20):
    with pystrobe.region("load"):
        spin(0.02)
    with pystrobe.region("train"):
        spin(0.01)
        with pystrobe.region("step"):
            spin(0.01)
    spin(0.01)
""",
    )
    assert told == near(load=40, train=20, train__step=20, none=20)


@pytest.mark.chance
@MODES
def test_short_regions_have_their_share(mode: str) -> None:
    """Shorter than the period."""
    told = answer(
        mode,
        """
end = time.thread_time() + 1
while time.thread_time() < end:
    with pystrobe.region("short"):
        spin(0.0002)
    spin(0.0002)
""",
    )
    assert told == near(short=50, none=50)


@MODES
def test_a_region_stands_above_the_function_that_has_it(mode: str) -> None:
    stacks = answer(
        mode,
        """
def outer():
    with pystrobe.region("part"):
        inner()
def inner():
    spin(0.3)
outer()
""",
        '[[f.function.split(".")[-1] for f in s.frames] for s in profile.stacks()]',
    )
    assert ["<module>", "main", "part", "outer", "inner", "spin"] in stacks
    assert not any(stack[-1] == "part" for stack in stacks), "it has no time of its own"


@MODES
def test_coroutines_have_regions_of_their_own(mode: str) -> None:
    told = answer(
        mode,
        """
async def work(name, seconds):
    for _ in range(20):
        with pystrobe.region(name):
            spin(seconds)
            await asyncio.sleep(0)
            spin(seconds)
        await asyncio.sleep(0)
@pystrobe.region("decorated")
async def decorated():
    for _ in range(20):
        spin(0.005)
        await asyncio.sleep(0)
async def both():
    await asyncio.gather(work("one", 0.005), work("two", 0.01), decorated())
asyncio.run(both())
""",
    )
    assert told == near(one=28.6, two=57.1, decorated=14.3)


def test_context_managers_pass_them_on() -> None:
    told = answer(
        "cpu",
        """
@contextlib.contextmanager
def manager():
    with pystrobe.region("manager"):
        yield
@contextlib.contextmanager
def outer():
    with manager():
        yield
@pystrobe.region("function")
def function():
    spin(0.1)
with manager():
    spin(0.1)
with outer():
    spin(0.1)
with contextlib.ExitStack() as stack:
    stack.enter_context(pystrobe.region("stack"))
    spin(0.2)
    stack.enter_context(manager())
    spin(0.1)
function()
spin(0.1)
""",
    )
    assert told == near(manager=28.6, stack=28.6, stack__manager=14.3, function=14.3, none=14.3)


def test_threads_are_in_their_own() -> None:
    told = answer(
        "cpu",
        """
region = pystrobe.region("shared")
def worker():
    for _ in range(10):
        with region:
            spin(0.01)
def other():
    spin(0.2)
threads = [threading.Thread(target=t) for t in (worker, worker, other)]
with pystrobe.region("main"):
    for thread in threads: thread.start()
    for thread in threads: thread.join()
""",
    )
    assert told == near(shared=50, none=50)


def test_an_exception_leaves_it() -> None:
    told = answer(
        "cpu",
        """
def fails():
    with pystrobe.region("fails"):
        spin(0.1)
        raise KeyError
for _ in range(3):
    try:
        fails()
    except KeyError:
        spin(0.1)
""",
    )
    assert told == near(fails=50, none=50)


SUFFIXES = (".pb.gz", ".collapsed", ".html", ".speedscope.json", ".json", ".strobe")


def in_short(frames: Iterable[tuple[str, str]]) -> str:
    """Of names and files; what is imported meanwhile has none in short."""
    own = [name for name, file in frames if file in ("<region>", "<string>")]
    return "/".join(name for name in own if name != "<module>")


def in_json(path: Path) -> set[str]:
    report = json.loads(path.read_text())
    functions = [(function["name"], function["file"]) for function in report["functions"]]
    stacks = [stack for thread in report["threads"] for stack in thread["stacks"]]
    return {in_short(functions[place] for place, _ in stack["frames"]) for stack in stacks}


def in_speedscope(path: Path) -> set[str]:
    saved = json.loads(path.read_text())
    frames = [(frame["name"], frame["file"]) for frame in saved["shared"]["frames"]]
    samples = [sample for profile in saved["profiles"] for sample in profile["samples"]]
    return {in_short(frames[place] for place in sample) for sample in samples}


def in_page(path: Path) -> set[str]:
    """Of the data in the page, in which a stack is a frame below an earlier one, and a row's counts
    from the row before."""
    found = re.search(r'id="profile">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    data = json.loads(found[1])
    strings, functions = data["strings"], data["functions"]
    stacks: list[tuple[tuple[str, str], ...]] = [()]
    for up, frame in zip(data["stacks"]["up"], data["stacks"]["frame"]):
        function = data["frames"]["function"][frame]
        named = (strings[functions["name"][function]], strings[functions["file"][function]])
        stacks.append((*stacks[len(stacks) - up], named))
    rows = [accumulate(thread["stack"]) for thread in data["threads"]]
    return {in_short(stacks[place]) for places in rows for place in places}


def test_every_format_has_them(tmp_path: Path) -> None:
    answer(
        "cpu",
        f"""
for name in ("load", "load"):
    with pystrobe.region(name):
        spin(0.2)
with pystrobe.region("train"):
    with pystrobe.region("step"):
        spin(0.2)
global save
save = lambda profile: [profile.save("{tmp_path}/out" + s) for s in {SUFFIXES}]
""",
        "save(profile)",
    )
    collapsed = (tmp_path / "out.collapsed").read_text()
    assert ";load (<region>);main (<string>:" in collapsed
    tags = pprof(tmp_path / "out.pb.gz", "-tags")
    assert "region" in tags
    assert "train/step" in tags
    stacks = in_speedscope(tmp_path / "out.speedscope.json")
    assert stacks == in_page(tmp_path / "out.html") == in_json(tmp_path / "out.json")
    assert {"load/main/spin", "train/step/main/spin"} <= stacks
    report = pystrobe.read(tmp_path / "out.strobe")
    marked = {row.name: row.total.cpu_ns for row in report.functions if row.file == "<region>"}
    assert marked.keys() == {"load", "train", "step"}
    assert marked["train"] == marked["step"]


def test_wrong_use_is_told() -> None:
    with pytest.raises(TypeError, match="the name of a region is a str, not int"):
        pystrobe.region(3)
    with pytest.raises(pystrobe.InvalidArgumentError, match="the region 'a' was not entered"):
        pystrobe.region("a").__exit__(None, None, None)
    with pytest.raises(TypeError, match="put `with` in generators"):

        @pystrobe.region("a")
        def generator() -> Any:
            yield

    assert repr(pystrobe.region("a")) == "region('a')"
    assert pystrobe.region("a").name == "a"


def test_a_region_is_of_python_code(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: queue.Queue[BaseException | None] = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda told: raised.put(told.exc_value))
    # A thread that begins with a function of C.
    _thread.start_new_thread(pystrobe.region("a").__enter__, ())
    error = raised.get(timeout=20)
    assert isinstance(error, pystrobe.InvalidArgumentError)
    assert error.message == "the region 'a' is entered where no Python code runs"


def test_a_region_returns_itself_and_may_be_used_again() -> None:
    region = pystrobe.region("again")
    with region as first, region as second:
        assert first is second is region

    @region
    def function(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert function(1, b=3) == 4
    assert function.__doc__ == "Adds."


def test_names_may_be_any_text() -> None:
    with pystrobe.region("na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve\ud800") as region:
        assert region.name == "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve\\ud800"


def test_what_is_no_name_of_a_range_is_refused() -> None:
    from pystrobe import gpu

    for make in (gpu.range, gpu.range_push):
        with pytest.raises(TypeError, match="the name of a range is a str, not int"):
            make(5)  # type: ignore[arg-type]
