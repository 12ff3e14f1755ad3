# SPDX-License-Identifier: Apache-2.0
"""C functions between Python's, sampled from within: every target on every interpreter."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import pytest
from cases import Case
from conftest import oracle_of
from find import Interpreter
from native_stacks import (
    FIRST_UNFIT,
    MOST_UNFIT,
    TOO_DEEP,
    NativeStack,
    cases_but_often,
    count_calls,
    count_inside,
    native_stacks,
    two_libraries,
)
from own_sampling import outside_its_root, sampling_itself
from pystrobe_command import Pystrobe

ENOUGH = 50
MOST_RUNS = 8


def of_the_program(stacks: list[NativeStack]) -> list[NativeStack]:
    return [stack for stack in stacks if not stack.thread.startswith("own sampler")]


@pytest.mark.each_layout
@pytest.mark.parametrize(
    "case", cases_but_often("awaits", "callbacks", "deep-200-moving", "generators", "native")
)
def test_c_functions_fit_between_those_of_python(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case
) -> None:
    """And what they stand between is a stack that the program can have."""
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    interpreter = outside_its_root(interpreter)
    oracle = oracle_of(case.target, interpreter)
    # Until rules are known samples take their stacks along, and there is no room for all that are
    # deep; on a machine that is busy elsewhere that takes long.
    is_deep = case.target == "deep" and case.arguments[0] != "20"
    most_cut = 0.06 if is_deep else 0.02
    judged = 0
    with sampling_itself(pystrobe, interpreter, case.target, *case.arguments) as own:
        for _ in range(MOST_RUNS):
            seconds = 2 if is_deep else 0.7
            report = own.record(seconds=seconds, rate=2000, native=True).json("--idle")
            quality = report["quality"]
            stacks = of_the_program(list(native_stacks(report)))
            verdict = oracle.judge([stack.python for stack in stacks])
            told = f"{verdict.describe()}\n{quality['line']}"
            assert verdict.impossible.total() == verdict.owned_up, told
            assert verdict.owned_up <= 2 + 0.001 * verdict.total, told
            most_unfit = FIRST_UNFIT + MOST_UNFIT.get(case.target, 0) * quality["taken"]
            assert quality["native_unfit"] <= most_unfit, told
            judged += verdict.total
            is_whole = case == TOO_DEEP or quality["native_cut"] <= most_cut * quality["taken"]
            if judged >= ENOUGH and is_whole:
                return
    pytest.fail(f"{judged} samples in all, and none of the runs was whole: {told}")


@pytest.mark.chance
@pytest.mark.each_layout
def test_c_functions_stand_below_who_called_them(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    interpreter = outside_its_root(interpreter)
    samples: Counter[str] = Counter()
    with sampling_itself(pystrobe, interpreter, "native") as own:
        # On a machine that is busy elsewhere it takes several to have enough.
        for _ in range(MOST_RUNS):
            report = own.record(seconds=1.5, rate=1000, native=True).json("--idle")
            quality = report["quality"]
            if quality["native_cut"] <= 0.01 * quality["taken"]:
                samples += count_inside(of_the_program(list(native_stacks(report))))
            if min(samples["shrink"], samples["python"]) > 200:
                break
    assert samples["shrink"] > 200
    # It takes the interpreter's lock again; three standard deviations of 2 %.
    outside = samples["shrink"] - samples["shrink in C"]
    assert outside < 0.02 * samples["shrink"] + 3 * sqrt(0.02 * samples["shrink"])
    assert samples["shrink by name"] > 0.95 * samples["shrink"]
    assert samples["digest in C"] > 0.9 * samples["digest"] > 10
    assert samples["python"] > 200
    assert samples["python in C"] <= 0.02 * samples["python"]


def test_names_follow_libraries_that_come_and_go(pystrobe: Pystrobe, newest: Interpreter) -> None:
    libraries = two_libraries(pystrobe.directory)
    with sampling_itself(pystrobe, newest, "c_libraries", *libraries) as own:
        for _ in range(MOST_RUNS):
            report = own.record(seconds=2.5, rate=1000, native=True).json("--idle")
            called = count_calls(of_the_program(list(native_stacks(report))))
            right = called["first", "burn_first"] + called["second", "burn_second"]
            least = min(called["first", "burn_first"], called["second", "burn_second"])
            # Within some milliseconds of a change the name may be that of what was there.
            if least > 200 and called.total() - right <= 0.1 * called.total():
                return
    pytest.fail(f"{called}; {report['quality']['line']}")
