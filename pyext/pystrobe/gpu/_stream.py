# SPDX-License-Identifier: Apache-2.0
"""Streams, whoever made them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pystrobe._errors import InvalidArgumentError

# Where a stream keeps the handle that the driver knows it by: PyTorch's, CuPy's, Numba's and
# cuda.core's.
_ATTRIBUTES = ("cuda_stream", "ptr", "handle")


def _current_of_torch(torch: Any) -> int | None:
    if not torch.cuda.is_initialized():
        return None
    # What PyTorch's own compilers use: to make the Stream object takes ten times as long.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return int(raw(torch.cuda.current_device()))
    return int(torch.cuda.current_stream().cuda_stream)


def _current_of_cupy(cupy: Any) -> int | None:
    return int(cupy.cuda.get_current_stream().ptr)


_CURRENT: dict[str, Callable[[Any], int | None]] = {
    "torch": _current_of_torch,
    "cupy": _current_of_cupy,
}


def _current() -> int:
    """Of the first library that is loaded and has one, else the legacy default stream."""
    for name, current in _CURRENT.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            handle = current(module)
        except Exception:  # half imported, or without CUDA: any error of theirs
            continue
        if handle is not None:
            return handle
    return 0


def handle_of(stream: object) -> int:
    """The driver's handle of ``stream``: of PyTorch, CuPy, Numba or cuda.core, by its
    ``__cuda_stream__`` or as a number; ``None``: the one that work goes to now."""
    if stream is None:
        return _current()
    if isinstance(stream, int) and not isinstance(stream, bool) and 0 <= stream < 1 << 64:
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version_and_handle = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    for attribute in _ATTRIBUTES:
        handle = getattr(stream, attribute, None)
        if handle is None:
            continue
        value = getattr(handle, "value", handle)  # of ctypes: None is the default stream
        return 0 if value is None else int(value)
    raise InvalidArgumentError(
        f"no CUDA stream: {stream!r}",
        "a stream of PyTorch, CuPy, Numba or cuda.core, its handle as a number, or None",
    )
