# SPDX-License-Identifier: Apache-2.0
"""Parts of a program that have names in tools for GPUs."""

from __future__ import annotations

from pystrobe import _core
from pystrobe._errors import Error
from pystrobe._region import region


def _hear() -> str | None:
    """Why it was in vain."""
    try:
        _core.gpu_hear_ranges()
    except Error as error:
        return str(error)
    return None


# NVTX looks for a tool when a library calls it first, and never again.
_in_vain = _hear()


def why_no_ranges() -> str | None:
    """Why the ranges that libraries of this process name by NVTX are not heard, in words; ``None``
    where they are: those of the libraries that used NVTX for the first time after
    ``pystrobe.gpu`` was imported."""
    tool = _core.gpu_other_range_tool()
    if tool is not None:
        return f"NVTX_INJECTION64_PATH names another tool: {tool}"
    return _in_vain


# Called straight from the program: the frame that calls it is the one that has the range.
range_push = _core.gpu_range_push
range_pop = _core.gpu_range_pop


class range(_core.GpuRange, region):  # noqa: N801  # as torch.cuda.nvtx calls it
    """A :class:`pystrobe.region` that is a range of NVTX too: Nsight Systems shows it, in the
    domain ``pystrobe``, as does any tool that ``NVTX_INJECTION64_PATH`` names before the first
    range.

    >>> with gpu.range("forward"):
    ...     model(x)
    >>> @gpu.range("step")
    ... def step(batch): ...

    Without a tool it costs what a region does. :func:`range_push` and :func:`range_pop` do the same
    where the part is no block; in our own reports what is pushed is a part of the function that
    pushes it, and ends with that. To a tool a thread's ranges are within each other: do not keep
    one open while other coroutines run.

    :param name: any text.
    """
