# SPDX-License-Identifier: Apache-2.0
"""Which steps of a loop are recorded."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import index

from pystrobe._check import is_count
from pystrobe._errors import InvalidArgumentError


class Action(enum.Enum):
    """What a profiler does in a step. The names are those of ``torch.profiler``, whose schedules
    serve as well."""

    NONE = "nothing"
    WARMUP = "tracing, but what is seen counts for nothing"
    RECORD = "recording"
    RECORD_AND_SAVE = "recording, and at its end there is a profile"


def schedule(
    *, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], Action]:
    """For ``Profiler(schedule=...)``: after ``skip_first`` steps, over and over, ``wait`` steps
    without profiling, ``warmup`` of which nothing is kept, ``active`` that make a profile.

    :param repeat: so many profiles and no more; 0: as long as there are steps.
    :raises InvalidArgumentError: what is no number of steps, or an ``active`` of 0.
    """
    for name, value in (
        ("wait", wait),
        ("warmup", warmup),
        ("active", active),
        ("repeat", repeat),
        ("skip_first", skip_first),
    ):
        if not is_count(value, least=1 if name == "active" else 0):
            raise InvalidArgumentError(
                f"{name} is {value!r}",
                "a number of steps: active 1 or more, the others 0 or more",
            )
    wait, warmup, active = index(wait), index(warmup), index(active)
    repeat, skip_first = index(repeat), index(skip_first)
    length = wait + warmup + active

    def action(step: int) -> Action:
        step -= skip_first
        if step < 0 or (repeat > 0 and step >= repeat * length):
            return Action.NONE
        place = step % length
        if place < wait:
            return Action.NONE
        if place < wait + warmup:
            return Action.WARMUP
        return Action.RECORD if place < length - 1 else Action.RECORD_AND_SAVE

    return action
