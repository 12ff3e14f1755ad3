# SPDX-License-Identifier: Apache-2.0
"""What a tracer costs a program of calls, all in one process:

    traced.py TOOL WORKLOAD UNITS REPEATS

The work is timed before, under and after the tracer, REPEATS times each. stdout: JSON with these
times in seconds (`before`, `under`, `after`), how many calls were made and how many the tracer
has told of (`made`, `told`; null: it does not count), the tool's `version`, and the interpreter's
`release`, what it was `configured` with, and its `compiler`. Runs on any interpreter from 3.9 on;
the tools must be importable.
"""

import importlib
import json
import platform
import sys
import sysconfig
import time
from importlib import metadata

# -- the workloads: a unit is some milliseconds of work


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def task_fib():
    fib(20)


def task_loop():
    total = 0
    for i in range(100_000):
        total += i * i & 7
    return total


def task_builtins():
    word = "word"
    for _ in range(50_000):
        len(word)


class Account:
    def __init__(self, owner):
        self.owner = owner
        self.amount = 0
        self.moves = []

    def deposit(self, amount):
        if amount < 0:
            raise ValueError(amount)
        self.amount += amount
        self.moves.append(amount)

    @property
    def average(self):
        return self.amount / len(self.moves)


def amounts(n):
    for i in range(n):
        yield i * 7 % 13 - 1


def task_mixed():
    accounts = [Account(f"owner {i}") for i in range(100)]
    for account in accounts:
        for amount in amounts(20):
            try:
                account.deposit(amount)
            except ValueError:
                account.moves.append(0)
    names = sorted((account.average, account.owner.upper()) for account in accounts)
    return json.dumps({name: value for value, name in names})


CALLS_OF_FIB_20 = 21_891
WORKLOADS = {"fib": task_fib, "loop": task_loop, "builtins": task_builtins, "mixed": task_mixed}


# -- the tools: each gives start, stop, and what it has counted for a name


class Nothing:
    """What chance alone makes of the figures."""

    package = None  # of which the version is told

    def start(self):
        pass

    def stop(self):
        pass

    def told(self, name):
        return None


class Pystrobe(Nothing):
    package = "pystrobe"

    def __init__(self, engine, **options):
        import pystrobe

        self.tracer = pystrobe.Tracer(engine=engine, **options)
        self.start, self.stop = self.tracer.start, self.tracer.stop

    def told(self, name):
        return sum(row.calls for row in self.tracer.stats() if row.function == name)


class CProfile(Nothing):
    def __init__(self, module="cProfile", name="Profile"):
        self.profile = getattr(importlib.import_module(module), name)()
        self.start, self.stop = self.profile.enable, self.profile.disable

    def told(self, name):
        import pstats

        stats = pstats.Stats(self.profile).stats
        return sum(sums[1] for (_, _, function), sums in stats.items() if function == name)


class SetProfile(Nothing):
    def start(self):
        sys.setprofile(lambda frame, event, argument: None)

    def stop(self):
        sys.setprofile(None)


class Yappi(Nothing):
    package = "yappi"

    def __init__(self, clock):
        import yappi

        self.yappi = yappi
        yappi.set_clock_type(clock)

    def start(self):
        self.yappi.start(builtins=False)

    def stop(self):
        self.yappi.stop()

    def told(self, name):
        return sum(one.ncall for one in self.yappi.get_func_stats() if one.name == name)


class VizTracer(Nothing):
    package = "viztracer"

    def __init__(self, **options):
        import viztracer

        self.tracer = viztracer.VizTracer(verbose=0, **options)
        self.start, self.stop = self.tracer.start, self.tracer.stop


class LineProfiler(Nothing):
    package = "line_profiler"

    def __init__(self):
        import line_profiler

        self.profiler = line_profiler.LineProfiler()
        for function in (fib, task_fib, task_loop, task_builtins, task_mixed, amounts):
            self.profiler.add_function(function)
        self.profiler.add_class(Account)
        self.start, self.stop = self.profiler.enable, self.profiler.disable


class Pyinstrument(Nothing):
    package = "pyinstrument"

    def __init__(self):
        import pyinstrument

        profiler = pyinstrument.Profiler()
        self.start, self.stop = profiler.start, profiler.stop


#: The module that each is in, which is imported before anything is timed: a process that has loaded
#: more may be faster or slower in itself.
TOOLS = {
    "none": (None, Nothing),
    "pystrobe": ("pystrobe._tracer", lambda: Pystrobe("auto")),
    "pystrobe builtins": ("pystrobe._tracer", lambda: Pystrobe("auto", builtins=True)),
    "pystrobe setprofile": ("pystrobe._tracer", lambda: Pystrobe("setprofile")),
    "pystrobe, excluded": ("pystrobe._tracer", lambda: Pystrobe("auto", exclude=["*"])),
    "cProfile": ("cProfile", CProfile),
    "profiling.tracing": ("profiling.tracing", lambda: CProfile("profiling.tracing")),
    "VizTracer": ("viztracer", VizTracer),
    "VizTracer without C": ("viztracer", lambda: VizTracer(ignore_c_function=True)),
    "yappi wall": ("yappi", lambda: Yappi("wall")),
    "yappi cpu": ("yappi", lambda: Yappi("cpu")),
    "sys.setprofile": (None, SetProfile),
    "line_profiler": ("line_profiler", LineProfiler),
    "pyinstrument": ("pyinstrument", Pyinstrument),
}


def version(package):
    try:
        return package and metadata.version(package)
    except metadata.PackageNotFoundError:
        return importlib.import_module(package).__version__


def configured():
    """What makes one build of a release faster than another; no paths."""
    words = (sysconfig.get_config_var("CONFIG_ARGS") or "").replace("'", "").split()
    chosen = [word for word in words if word.startswith(("--enable-", "--with", "--disable-"))]
    return " ".join(sorted({word for word in chosen if "/" not in word}))


def times(work, units, repeats):
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(units):
            work()
        taken.append(time.perf_counter() - begin)
    return taken


def main():
    name, workload, units, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    work = WORKLOADS[workload]
    module, make = TOOLS[name]
    if module is not None:
        importlib.import_module(module)
    times(work, units, 1)  # the first time the interpreter specialises what it runs
    before = times(work, units, repeats)
    tool = make()  # some have an effect from here on
    tool.start()
    under = times(work, units, repeats)
    tool.stop()
    after = times(work, units, repeats)
    made = CALLS_OF_FIB_20 * units * repeats if workload == "fib" else None
    print(
        json.dumps(
            {
                "before": before,
                "under": under,
                "after": after,
                "made": made,
                "told": tool.told("fib") if made else None,
                "version": version(tool.package),
                "release": platform.python_version(),
                "configured": configured(),
                "compiler": platform.python_compiler(),
            }
        )
    )


if __name__ == "__main__":
    main()
