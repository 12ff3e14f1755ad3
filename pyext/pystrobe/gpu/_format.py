# SPDX-License-Identifier: Apache-2.0
"""Times for people."""

from __future__ import annotations

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"))
_FEWEST = 5


def format_seconds(seconds: float) -> str:
    """Three digits and a unit: ``"4.54 us"``."""
    for size, unit in _UNITS:
        rounded = float(f"{seconds / size:.3g}")
        if rounded < 1000:
            return f"{rounded:.3g} {unit}"
    return f"{seconds:.0f} s" if seconds >= 999.5 else f"{seconds:.3g} s"


def format_noise(noise: float, count: int) -> str:
    """As a percentage; ``"-"`` of samples that are too few to tell."""
    if count < _FEWEST:
        return "-"
    percent = 100 * noise
    return f"{percent:.0f} %" if percent >= 9.5 else f"{percent:.2g} %"


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "  ".join(padded).rstrip()

    return "\n".join(line(cells) for cells in [head, *rows])
