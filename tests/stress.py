#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that sample themselves by signals, with C functions and without, for as long as asked:

    tests/stress.py MINUTES [--python NAME...] [--seed N]

Threads that are born and die, deep recursion, generators, exceptions, garbage with finalizers,
code that comes and goes, libraries that are loaded and closed; each at some rate, on some
interpreter. A program must live, and no stack be one that it cannot have. Prints what went wrong,
and the sums, of each program and of all; exits with 1 when anything did.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS / "python"), str(TESTS / "interpreters")]

from cases import CALL_HEAVY, COLLECTING, Case  # noqa: E402
from conftest import all_interpreters, oracle_of  # noqa: E402
from find import Interpreter  # noqa: E402
from native_stacks import native_stacks, two_libraries  # noqa: E402
from own_sampling import outside_its_root, sampling_itself  # noqa: E402
from pystrobe_command import Pystrobe, find_executable  # noqa: E402

RATES = (500, 1000, 2000, 5000, 10_000)
RECORDINGS = 3
# Free-threaded 3.13 waits for sub-interpreters that run, without end, sampled or not.
NEVER_ENDS = "subinterpreters"


def stress(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case, chance: random.Random
) -> Counter[str]:
    """Some recordings of one process; fails an assertion where one is not as it must be."""
    sums: Counter[str] = Counter(programs=1)
    oracle = oracle_of(case.target, interpreter)
    with sampling_itself(pystrobe, interpreter, case.target, *case.arguments) as own:
        for _ in range(RECORDINGS):
            native = chance.random() < 0.6
            report = own.record(
                seconds=chance.uniform(0.05, 1.5), rate=chance.choice(RATES), native=native
            ).json("--idle")
            quality = report["quality"]
            stacks = [
                stack.python
                for stack in native_stacks(report)
                if not stack.thread.startswith("own sampler")
            ]
            verdict = oracle.judge(stacks)
            sums.update(recordings=1, samples=quality["taken"], lost=quality["lost"])
            sums.update(incomplete=quality["incomplete"], unfit=quality["native_unfit"])
            told = f"{verdict.describe()}\n{quality['line']}"
            assert verdict.impossible.total() == verdict.owned_up, told
            assert verdict.owned_up <= 2 + 0.001 * verdict.total, told
        assert own.target.alive(), "it has ended"
        if case.target != NEVER_ENDS:
            own.target.stop()
            assert own.target.process.returncode == 0, own.target.process.returncode
    return sums


def described(sums: Counter[str]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sums.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("minutes", type=float)
    parser.add_argument("--python", nargs="+", metavar="NAME")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    print(f"seed {arguments.seed}")
    executable = find_executable()
    if executable is None:
        parser.error("no pystrobe executable: build it, or name it in PYSTROBE")
    interpreters = [
        outside_its_root(one)
        for one in all_interpreters()
        if not arguments.python or one.name in arguments.python
    ]
    sums: Counter[str] = Counter()
    of_case: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as directory:
        pystrobe = Pystrobe(executable, Path(directory))
        cases = [*CALL_HEAVY, COLLECTING, Case("native"), Case("split")]
        cases.append(Case("c_libraries", tuple(two_libraries(Path(directory)))))
        end = time.monotonic() + 60 * arguments.minutes
        while time.monotonic() < end:
            interpreter, case = chance.choice(interpreters), chance.choice(cases)
            if not case.runs_on(interpreter):
                continue
            try:
                sums += (found := stress(pystrobe, interpreter, case, chance))
                of_case[case.name] += found
            except (AssertionError, OSError, subprocess.SubprocessError) as failure:
                sums["failed"] += 1
                print(f"{interpreter.name} {case.name}: {failure}", flush=True)
    for name, found in sorted(of_case.items()):
        print(f"{name}: {described(found)}")
    print(described(sums))
    return 1 if sums["failed"] or not sums["samples"] else 0


if __name__ == "__main__":
    sys.exit(main())
