# SPDX-License-Identifier: Apache-2.0
"""Programs whose calls are traced, on each interpreter and by each engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from own_interpreters import Own, own_interpreters
from own_program import answer


@dataclass(frozen=True)
class Way:
    """An interpreter, and how it is to tell of calls."""

    by: Own
    engine: str


def ways() -> list[Way]:
    found = []
    for own in own_interpreters():
        found.append(Way(own, "setprofile"))
        if own.version >= (3, 12):
            found.append(Way(own, "monitoring"))
        elif has_frame_eval(own):
            found.append(Way(own, "frame-eval"))
    return found


def has_frame_eval(own: Own) -> bool:
    """The first releases of 3.11 do not let every frame be evaluated."""
    return own.version < (3, 11) or (3, 11, 4) <= own.version < (3, 12)


def name_of_way(way: Way) -> str:
    return f"{way.by.name}-{way.engine}"


each_engine = pytest.mark.parametrize("way", ways(), ids=name_of_way)


each_set_profile = pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine == "setprofile"], ids=name_of_way
)
each_monitoring = pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine == "monitoring"], ids=name_of_way
)


each_but_frame_eval = pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine != "frame-eval"], ids=name_of_way
)


COUNTING = """
import asyncio, collections, contextlib, json, random, threading
import pystrobe

COUNTS = collections.Counter()

def traced(work, **options):
    with pystrobe.Tracer(engine=ENGINE, **options) as tracer:
        work()
    return tracer

def found(tracer, names):
    calls = collections.Counter()
    for row in tracer.stats():
        calls[row.function.rpartition(".")[2]] += row.calls
    return {name: calls[name] for name in names}
"""


def told(way: Way, code: str) -> Any:
    return answer(f"ENGINE = {way.engine!r}\n{COUNTING}{code}", by=way.by)
