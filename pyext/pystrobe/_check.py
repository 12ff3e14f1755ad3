# SPDX-License-Identifier: Apache-2.0
"""What a profiler is asked for, looked at before anything begins."""

from __future__ import annotations

import os
from operator import index
from typing import SupportsFloat, SupportsIndex

from pystrobe._errors import InvalidArgumentError
from pystrobe._output import check_name

MODES = ("cpu", "wall", "gpu")
_THREADS = ("all", "current")
_SUCH_AS = {"mode": "cpu", "unit": "us"}
_GPU = (False, True, "launches")
_HIGHEST_RATE = 1_000_000.0
_LOWEST_RATE = 1 / 36_000  # one sample in ten hours: less is a slip of the finger


#: Of what is counted in the core.
_MOST = (1 << 31) - 1


def is_count(value: object, least: int = 0) -> bool:
    """Whether it is a whole number of things: of what type, whoever uses it makes an int of it."""
    if not isinstance(value, SupportsIndex) or isinstance(value, bool):
        return False
    return least <= index(value) <= _MOST


def is_utf8(text: str) -> bool:
    """Whether the core can have it: one with surrogates it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_word(name: str, value: object) -> None:
    """The core knows which words there are; it takes none that are not text.

    :raises InvalidArgumentError: it is neither a text nor ``None``.
    """
    if value is not None and not (isinstance(value, str) and value and is_utf8(value)):
        raise InvalidArgumentError(
            f"{name} is {value!r}", f"a word, such as {name}={_SUCH_AS[name]!r}"
        )


def _is_within(value: object, most: float, least: float = 0.0) -> bool:
    """Above 0, too."""
    try:
        number = float(value) if isinstance(value, SupportsFloat) else 0.0
    except OverflowError:  # of an int that is too great for a float
        return False
    return number > 0 and least <= number <= most


def check_sampling(
    mode: object, rate: float | None, max_overhead: float | None, native: bool, threads: object
) -> None:
    if mode not in MODES:
        raise InvalidArgumentError(f"no such mode: {mode!r}", f"one of {', '.join(MODES)}")
    if native not in (False, True):
        raise InvalidArgumentError(f"native is {native!r}", "True or False")
    if threads not in _THREADS:
        raise InvalidArgumentError(f"no such threads: {threads!r}", f"one of {', '.join(_THREADS)}")
    if rate is not None and not _is_within(rate, _HIGHEST_RATE, _LOWEST_RATE):
        raise InvalidArgumentError(
            f"the rate is {rate!r}",
            f"samples a second: one in ten hours at least, {_HIGHEST_RATE:,.0f} at most",
        )
    if max_overhead is not None and not _is_within(max_overhead, 1):
        raise InvalidArgumentError(
            f"max_overhead is {max_overhead!r}", "a share of the time: above 0, 1 at most"
        )
    if max_overhead is not None and mode == "cpu":
        raise InvalidArgumentError(
            f"max_overhead is {max_overhead!r} with mode='cpu'",
            "it is for mode='wall'; by CPU time give a lower rate",
        )
    if rate is not None and mode == "gpu":
        raise InvalidArgumentError(
            f"the rate is {rate!r} with mode='gpu'", "all of a GPU's work is seen: leave it out"
        )
    if max_overhead is not None and mode == "gpu":
        raise InvalidArgumentError(
            f"max_overhead is {max_overhead!r} with mode='gpu'", "it is for mode='wall'"
        )
    if native and mode != "cpu":
        raise InvalidArgumentError(
            f"native=True with mode={mode!r}", "it is for mode='cpu'; leave one of them out"
        )
    if threads != "all" and mode != "cpu":
        raise InvalidArgumentError(
            f"threads={threads!r} with mode={mode!r}",
            "it is for mode='cpu'; by wall time choose when you look: "
            "profile.print(thread='MainThread')",
        )


def check_gpu(mode: str, gpu: object, timeline: bool) -> None:
    if gpu not in _GPU:
        raise InvalidArgumentError(f"gpu={gpu!r}", "True, False or 'launches'")
    if timeline and not gpu and mode != "gpu":
        raise InvalidArgumentError("timeline=True without a GPU", "it is for gpu=True")
    if timeline and gpu == "launches":
        raise InvalidArgumentError(
            "timeline=True with gpu='launches'", "when work ran is told with gpu=True alone"
        )


def check_called(schedule: object, on_trace_ready: object) -> None:
    if schedule is not None and not callable(schedule):
        raise InvalidArgumentError(
            f"the schedule is {schedule!r}", "it is called with the number of each step"
        )
    if on_trace_ready is not None and not callable(on_trace_ready):
        raise InvalidArgumentError(
            f"on_trace_ready is {on_trace_ready!r}", "it is called with the profiler"
        )


def check_output(
    output: str | os.PathLike[str] | None,
    follow_fork: bool,
    mode: str,
    timeline: bool,
    schedule: object,
) -> None:
    if output is not None:
        check_name(output, timeline=timeline)
    if output is not None and schedule is not None:
        raise InvalidArgumentError(
            "an output with a schedule, which makes several profiles",
            "save each: on_trace_ready=lambda profiler: profiler.profile.save(...)",
        )
    if not follow_fork:
        return
    if output is None:
        raise InvalidArgumentError(
            "follow_fork=True without an output",
            "output='work.html': children write work.PID.html beside it",
        )
    if mode == "gpu":
        raise InvalidArgumentError(
            "follow_fork=True with mode='gpu'", "a GPU's work is not seen in children"
        )
