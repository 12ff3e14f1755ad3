# SPDX-License-Identifier: Apache-2.0
"""Arguments that cannot be: each is told with its value, and with what it may be."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")
from pystrobe import gpu  # noqa: E402

pytestmark = pytest.mark.beside_others

NOT_TEXT = "\ud800"


def nothing() -> None:
    pass


@pytest.fixture(scope="module")
def tracer() -> Any:
    with pystrobe.Tracer(clock="wall") as tracer:
        nothing()
    return tracer


@pytest.mark.parametrize("top", [-1, 0, 1.5, float("nan"), 10**30, "x", True])
def test_rows_that_cannot_be_shown(tracer: Any, top: Any) -> None:
    with pytest.raises(pystrobe.InvalidArgumentError, match=f"top is {top!r}"):
        tracer.print(top=top, file=io.StringIO())


@pytest.mark.parametrize("mode", [1, b"cpu", NOT_TEXT, "nope"])
def test_modes_that_are_none(tracer: Any, mode: Any) -> None:
    with pytest.raises(pystrobe.InvalidArgumentError, match="mode"):
        tracer.print(mode=mode, file=io.StringIO())


@pytest.mark.parametrize("sort", [1, b"self", "", "self_cpu"])
def test_orders_that_are_none(tracer: Any, sort: Any) -> None:
    with pytest.raises(pystrobe.InvalidArgumentError, match=r"no such order|no CPU time"):
        tracer.stats(sort=sort)


WRONG: dict[str, Callable[[], object]] = {
    "pid is": lambda: pystrobe.dump(2**70),
    "the rate is": lambda: pystrobe.Profiler(rate=2**2000),
    "builtins='no'": lambda: pystrobe.Tracer(builtins="no"),
    "stdlib=2": lambda: pystrobe.Tracer(stdlib=2),
    "a pattern of exclude is": lambda: pystrobe.Tracer(exclude=["a\0b"]),
    "a pattern of include is": lambda: pystrobe.Tracer(include=[NOT_TEXT]),
    "no CUDA stream": lambda: gpu.measure(nothing, stream=2**64),
    "num_warmups is 1.5": lambda: gpu.measure(nothing, num_warmups=1.5),
    "min_samples is True": lambda: gpu.measure(nothing, min_samples=True),
    "num_trials 'x'": lambda: gpu.benchmark("a", nothing, num_trials="x"),
    "active is 0": lambda: gpu.schedule(active=0),
}


@pytest.mark.parametrize("told", WRONG)
def test_values_out_of_range(told: str) -> None:
    with pytest.raises(pystrobe.InvalidArgumentError, match=told):
        WRONG[told]()


def test_a_schedule_takes_what_counts_as_an_int() -> None:
    class Three:
        def __index__(self) -> int:
            return 3

    steps = gpu.schedule(active=Three(), skip_first=Three(), repeat=Three())
    assert [steps(step).name for step in (2, 3, 5, 12)] == [
        *("NONE", "RECORD", "RECORD_AND_SAVE", "NONE")
    ]
