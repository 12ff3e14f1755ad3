# SPDX-License-Identifier: Apache-2.0
"""What part of the whole each function has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from collapsed import Stack


def share_of(stacks: Iterable[Stack], functions: Iterable[str]) -> dict[str, float]:
    """Percent of the total below each of these functions."""
    totals: dict[str, int] = defaultdict(int)
    for stack in stacks:
        names = {frame.name for frame in stack.frames}
        for function in functions:
            totals[function] += stack.samples * (function in names)
        totals[""] += stack.samples
    return {function: 100 * totals[function] / totals[""] for function in functions}


def percent(seconds: dict[str, float]) -> dict[str, float]:
    total = sum(seconds.values())
    return {name: 100 * value / total for name, value in seconds.items()}
