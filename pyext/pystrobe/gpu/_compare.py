# SPDX-License-Identifier: Apache-2.0
"""Several ways to do one thing, side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pystrobe import _core
from pystrobe._errors import InvalidArgumentError
from pystrobe.gpu._format import format_noise, format_seconds, format_table
from pystrobe.gpu._measure import Measurement, MeasureOptions, check_callable, measure_in_turn
from pystrobe.gpu._trace import works_of

# Of all pairs together: which is the fastest is known only afterwards.
_SIGNIFICANCE = 0.01
# Medians that differ by less are no reason to choose.
_NEGLIGIBLE = 0.01
# No fewer tell anything.
_FEWEST = 5


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found: ``measurements`` in the order given."""

    measurements: tuple[Measurement, ...]
    works: tuple[Mapping[str, int], ...] | None = None
    """What one call of each puts on the device: kernels, copies and sets by their short names, with
    how many; ``None`` where CUPTI is not to be had."""

    @property
    def fastest(self) -> Measurement:
        """By the median of the device's time."""
        return min(self.measurements, key=lambda measured: measured.gpu.median)

    def p_value(self, measured: Measurement) -> float:
        """How probable a difference from the fastest as great as this is, if there is none (Mann
        and Whitney's U test, two-sided), times the number of pairs (Bonferroni)."""
        if measured is self.fastest:
            return 1.0
        p = _core.gpu_p_value(measured.gpu_seconds, self.fastest.gpu_seconds)
        count = len(self.measurements)
        return min(1.0, p * count * (count - 1) / 2)

    def verdict(self, measured: Measurement) -> str:
        """Of the device's time, against the fastest, in words."""
        if min(one.gpu.count for one in self.measurements) < _FEWEST:
            return "too few samples"
        if measured is self.fastest:
            return "fastest"
        ratio = measured.gpu.median / self.fastest.gpu.median
        if self.p_value(measured) >= _SIGNIFICANCE:
            return "no difference seen"
        if ratio - 1 < _NEGLIGIBLE:
            return f"slower, by less than {100 * _NEGLIGIBLE:.0f} %"
        return f"x{ratio:.2f}"

    def table(self) -> str:
        """For a terminal."""
        head = ["", "GPU time", "noise", "launch (CPU)", "launches", "samples"]
        rows = [
            [
                one.name,
                format_seconds(one.gpu.median),
                format_noise(one.gpu.noise, one.gpu.count),
                format_seconds(one.cpu.median),
                "-" if self.works is None else str(sum(self.works[place].values())),
                str(one.gpu.count),
                self.verdict(one),
            ]
            for place, one in enumerate(self.measurements)
        ]
        lines = [format_table([*head, "against the fastest"], rows)]
        for one, works in zip(self.measurements, self.works or ()):
            named = (name if count == 1 else f"{count} x {name}" for name, count in works.items())
            lines.append(f"{one.name}: {', '.join(named) or 'nothing on the device'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


def compare(
    functions: Mapping[str, Callable[..., object]], *arguments: object, **options: Any
) -> Comparison:
    """Measures several functions, a sample of each in turn, so that what changes meanwhile changes
    for all of them, and tells whether they differ; and, by a call more of each, which kernels are
    behind them.

    >>> print(gpu.compare({"square": torch.square, "a*a": lambda a: a * a}, x))

    :param functions: by name; each is called with ``arguments``.
    :param options: as for :func:`measure`.
    """
    if not isinstance(functions, Mapping) or not functions:
        raise InvalidArgumentError(
            f"what to compare is {functions!r}",
            'functions by name, at least one: {"square": torch.square}',
        )
    for name, function in functions.items():
        if not isinstance(name, str):
            raise InvalidArgumentError(f"a function's name is {name!r}", "a text")
        check_callable(function, name)
    bound: dict[str, Callable[[], object]] = {
        name: functools.partial(function, *arguments) for name, function in functions.items()
    }
    measurements = tuple(measure_in_turn(bound, MeasureOptions.of("compare", options)))
    works = []
    for call in bound.values():
        found = works_of(call)
        if found is None:
            return Comparison(measurements, None)
        works.append(found)
    return Comparison(measurements, tuple(works))
