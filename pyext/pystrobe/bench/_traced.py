# SPDX-License-Identifier: Apache-2.0
"""What a profiler costs a program of calls, all in one process:

    _traced.py TOOL WORKLOAD UNITS TURNS

The work is timed without the profiler, then by turns with it and without it, so that each turn
stands between two without it at the speed that the machine has just then. stdout: JSON with these
times in seconds (`before`: before it was there; `alone`: when it is not, one more than there are
turns; `under`: when it is), how many `calls` are in such a time, how many were made in all under
the profiler and how many it has told of (`made`, `told`; null: it does not count), the tool's
`version`, and the interpreter's `release`, what it was `configured` with, and its `compiler`. Runs
on any interpreter from 3.9 on; the tools must be importable.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

# -- the workloads: a unit is some milliseconds of work


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def task_fib() -> None:
    fib(20)


def task_loop() -> int:
    total = 0
    for i in range(100_000):
        total += i * i & 7
    return total


def task_builtins() -> None:
    word = "word"
    for _ in range(50_000):
        len(word)


class Account:
    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.amount = 0
        self.moves: list[int] = []

    def deposit(self, amount: int) -> None:
        if amount < 0:
            raise ValueError(amount)
        self.amount += amount
        self.moves.append(amount)

    @property
    def average(self) -> float:
        return self.amount / len(self.moves)


def amounts(n: int) -> Iterator[int]:
    for i in range(n):
        yield i * 7 % 13 - 1


def task_mixed() -> str:
    accounts = [Account(f"owner {i}") for i in range(100)]
    for account in accounts:
        for amount in amounts(20):
            try:
                account.deposit(amount)
            except ValueError:
                account.moves.append(0)
    names = sorted((account.average, account.owner.upper()) for account in accounts)
    return json.dumps({name: value for value, name in names})


#: What a unit calls, and how often.
CALLS = {"fib": ("fib", 21_891), "builtins": ("len", 50_000)}
WORKLOADS: dict[str, Callable[[], object]] = {
    **{"fib": task_fib, "loop": task_loop, "builtins": task_builtins, "mixed": task_mixed}
}


# -- the tools: each gives start and stop, again and again, and what it has counted for a name


class Nothing:
    """What chance alone makes of the figures."""

    package: str | None = None  #: of which the version is told
    counts: frozenset[str] = frozenset()  #: of which functions it tells how often they were called

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def told(self, name: str) -> int:
        """:param name: one of those that it counts."""
        raise NotImplementedError


class Delegating(Nothing):
    """By what a tool has for it."""

    def __init__(self, package: str, start: Callable[[], Any], stop: Callable[[], Any]) -> None:
        self.package = package
        self.start, self.stop = start, stop  # type: ignore[method-assign]


class Ours(Nothing):
    """A tracer or profiler is made for each turn."""

    package = "pystrobe"

    def __init__(self, make: Callable[..., Any], **options: Any) -> None:
        self.make, self.options = make, options
        self.made: list[Any] = []

    def start(self) -> None:
        self.made.append(self.make(**self.options))
        self.made[-1].start()

    def stop(self) -> None:
        self.made[-1].stop()


class Tracing(Ours):
    def __init__(self, engine: Any, **options: Any) -> None:
        import pystrobe

        super().__init__(pystrobe.Tracer, engine=engine, **options)
        if "exclude" not in options:
            self.counts = frozenset({"fib", "len"} if options.get("builtins") else {"fib"})

    def told(self, name: str) -> int:
        return sum(row.calls for one in self.made for row in one.stats() if row.function == name)


def sampling() -> Nothing:
    import pystrobe

    return Ours(pystrobe.Profiler, rate=1000)


class Profile(Nothing):
    """cProfile, or what is called by another name from 3.15 on."""

    counts = frozenset({"fib", "len"})

    def __init__(self, module: str) -> None:
        self.profile = importlib.import_module(module).Profile()
        self.start, self.stop = self.profile.enable, self.profile.disable  # type: ignore[method-assign]

    def told(self, name: str) -> int:
        import pstats

        stats: dict[Any, Any] = pstats.Stats(self.profile).stats  # type: ignore[attr-defined]
        names = (name, f"<built-in method builtins.{name}>")
        return sum(sums[1] for (_, _, function), sums in stats.items() if function in names)


class SetProfile(Nothing):
    def start(self) -> None:
        sys.setprofile(lambda frame, event, argument: None)

    def stop(self) -> None:
        sys.setprofile(None)


class BareHook(Nothing):
    """What a hook of C costs that does nothing, or reads the clock and does no more."""

    def __init__(self, **options: bool) -> None:
        self.core = importlib.import_module("pystrobe._core")
        self.options = options

    def start(self) -> None:
        self.core._set_empty_hooks(**self.options)

    def stop(self) -> None:
        self.core._remove_empty_hooks()


def bare(**options: bool) -> tuple[str, Callable[[], Nothing]]:
    return "pystrobe._core", lambda: BareHook(**options)


class Yappi(Nothing):
    package = "yappi"
    counts = frozenset({"fib"})

    def __init__(self, clock: str) -> None:
        self.yappi = importlib.import_module("yappi")
        self.yappi.set_clock_type(clock)

    def start(self) -> None:
        self.yappi.start(builtins=False)

    def stop(self) -> None:
        self.yappi.stop()

    def told(self, name: str) -> int:
        return sum(one.ncall for one in self.yappi.get_func_stats() if one.name == name)


def viztracer(**options: Any) -> Nothing:
    tracer = importlib.import_module("viztracer").VizTracer(verbose=0, **options)
    return Delegating("viztracer", tracer.start, tracer.stop)


def line_profiler() -> Nothing:
    profiler = importlib.import_module("line_profiler").LineProfiler()
    for function in (fib, task_fib, task_loop, task_builtins, task_mixed, amounts):
        profiler.add_function(function)
    profiler.add_class(Account)
    return Delegating("line_profiler", profiler.enable, profiler.disable)


def pyinstrument() -> Nothing:
    profiler = importlib.import_module("pyinstrument").Profiler()
    return Delegating("pyinstrument", profiler.start, profiler.stop)


def outside(name: str) -> Nothing:
    sampler: Nothing = importlib.import_module("pystrobe.bench._outside").Sampler(name)
    return sampler


#: The module that each is in, which is imported before anything is timed: a process that has loaded
#: more may be faster or slower in itself.
TOOLS: dict[str, tuple[str | None, Callable[[], Nothing]]] = {
    "none": (None, Nothing),
    "pystrobe": ("pystrobe._tracer", lambda: Tracing("auto")),
    "pystrobe builtins": ("pystrobe._tracer", lambda: Tracing("auto", builtins=True)),
    "pystrobe setprofile": ("pystrobe._tracer", lambda: Tracing("setprofile")),
    "pystrobe, excluded": ("pystrobe._tracer", lambda: Tracing("auto", exclude=["*"])),
    "pystrobe, sampling": ("pystrobe._profiler", sampling),
    "cProfile": ("cProfile", lambda: Profile("cProfile")),
    "profiling.tracing": ("profiling.tracing", lambda: Profile("profiling.tracing")),
    "VizTracer": ("viztracer", viztracer),
    "VizTracer without C": ("viztracer", lambda: viztracer(ignore_c_function=True)),
    "yappi wall": ("yappi", lambda: Yappi("wall")),
    "yappi cpu": ("yappi", lambda: Yappi("cpu")),
    "sys.setprofile": (None, SetProfile),
    "empty C hook": bare(fast=False),
    "C hook with clock": bare(fast=False, reads_clock=True),
    "empty fast hook": bare(fast=True),
    "fast hook with clock": bare(fast=True, reads_clock=True),
    "hook of builtins with clock": bare(fast=True, builtins=True, reads_clock=True),
    "line_profiler": ("line_profiler", line_profiler),
    "pyinstrument": ("pyinstrument", pyinstrument),
    "pystrobe, attach": ("pystrobe.bench._outside", lambda: outside("pystrobe, attach")),
    "py-spy": ("pystrobe.bench._outside", lambda: outside("py-spy")),
    "Austin": ("pystrobe.bench._outside", lambda: outside("Austin")),
    "profiling.sampling": ("profiling.sampling", lambda: outside("profiling.sampling")),
}
#: Of those that are programs of their own: what they are called.
COMMANDS = {"py-spy": "py-spy", "Austin": "austin"}


def version(package: str | None) -> str | None:
    try:
        return package and metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(importlib.import_module(str(package)).__version__)


def configured() -> str:
    """What makes one build of a release faster than another; no paths."""
    words = (sysconfig.get_config_var("CONFIG_ARGS") or "").replace("'", "").split()
    chosen = [word for word in words if word.startswith(("--enable-", "--with", "--disable-"))]
    return " ".join(sorted({word for word in chosen if "/" not in word}))


def time_of(work: Callable[[], object], units: int) -> float:
    """The first unit does not count: there the interpreter changes what it runs, or it back."""
    work()
    begin = time.perf_counter()
    for _ in range(units):
        work()
    return time.perf_counter() - begin


def by_turns(
    tool: Nothing, work: Callable[[], object], units: int, turns: int
) -> dict[str, list[float]]:
    alone, under = [time_of(work, units)], []
    for _ in range(turns):
        tool.start()
        under.append(time_of(work, units))
        tool.stop()
        alone.append(time_of(work, units))
    return {"alone": alone, "under": under}


def main() -> None:
    name, workload, units, turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    work = WORKLOADS[workload]
    module, make = TOOLS[name]
    if module is not None:
        importlib.import_module(module)
    time_of(work, units)
    before = [time_of(work, units) for _ in range(turns)]
    tool = make()  # some have an effect from here on
    answer: dict[str, Any] = {"before": before, **by_turns(tool, work, units, turns)}
    called, calls = CALLS.get(workload, ("", 0))
    answer.update(
        **{"calls": calls * units or None, "made": calls * (units + 1) * turns or None},
        **{"told": tool.told(called) if called in tool.counts else None},
        **{"version": version(tool.package), "release": platform.python_version()},
        **{"configured": configured(), "compiler": platform.python_compiler()},
    )
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
