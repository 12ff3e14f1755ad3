# SPDX-License-Identifier: Apache-2.0
"""Times for people."""

from __future__ import annotations

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def format_seconds(seconds: float) -> str:
    """Three digits and a unit: ``"4.54 us"``."""
    for size, unit in _UNITS:
        if seconds >= size or unit == "ns":
            return f"{seconds / size:.3g} {unit}"
    raise AssertionError("the last unit takes all")


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """The first column is text, to the left; the others are figures, to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "  ".join(padded).rstrip()

    return "\n".join(line(cells) for cells in [head, *rows])
