# SPDX-License-Identifier: Apache-2.0
"""How long the device takes for a block of code."""

from __future__ import annotations

import time
from types import TracebackType

from pystrobe import _core
from pystrobe._errors import Error, GpuError
from pystrobe.gpu._stream import handle_of


class Timer:
    """Two events on a stream, around a block. See :func:`timer`."""

    def __init__(self, name: str = "", *, stream: object = None) -> None:
        self._name = name
        self._stream = stream
        self._events: _core.GpuTimer | None = None
        self._begin = 0.0
        self._host_seconds: float | None = None
        self._failure: GpuError | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def host_seconds(self) -> float:
        """Elapsed time of the block here, the events included: to put the work on the stream, as a
        rule."""
        if self._host_seconds is None:
            raise Error(f"the timer {self._name!r} has not ended", "leave its block first")
        return self._host_seconds

    def seconds(self) -> float | None:
        """What the device took; ``None`` while it is not there yet. Waits for nothing.

        :raises GpuError: the stream is gone, or a kernel has failed.
        """
        return None if self._host_seconds is None else self._ended().read()

    def wait(self) -> float:
        """What the device took, once it is there. Other threads run meanwhile.

        :raises GpuError: the stream is gone, or a kernel has failed.
        """
        return self._ended().wait()

    def _ended(self) -> _core.GpuTimer:
        if self._failure is not None:
            raise GpuError(self._failure.message, self._failure.hint)
        if self._events is None or self._host_seconds is None:
            raise Error(f"the timer {self._name!r} has not ended", "leave its block first")
        return self._events

    def __enter__(self) -> Timer:
        if self._events is not None and self._host_seconds is None:
            raise Error(f"the timer {self._name!r} has begun", "time each block with its own")
        self._host_seconds = self._failure = None
        events = _core.GpuTimer(handle_of(self._stream))
        self._begin = time.perf_counter()
        events.start()
        self._events = events
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._events is None:
            raise Error(f"the timer {self._name!r} has not begun", "enter its block first")
        try:
            self._events.stop()
        except GpuError as failure:
            self._failure = failure
            if error is None:
                raise  # else what the block raised tells more
        finally:
            self._host_seconds = time.perf_counter() - self._begin

    def __repr__(self) -> str:
        return f"<pystrobe.gpu.Timer {self._name!r}>"


def timer(name: str = "", *, stream: object = None) -> Timer:
    """Times what a block puts on a stream, by the device's own clock, without waiting for it.

    >>> with gpu.timer("forward") as timer:
    ...     model(x)
    >>> timer.wait()          # or timer.seconds(), which is None while the device is not there yet

    The time is that from when the device came to the block's work until it had done it; where the
    stream waits for launches, they are in it. To keep them out, see :func:`measure`.

    :param stream: of PyTorch, CuPy, Numba or cuda.core, or its handle as a number. ``None``: the
        one that PyTorch or CuPy uses at the block's begin, else the default stream.
    :raises GpuError: there is no GPU, or its driver refused, which it tells.
    """
    return Timer(name, stream=stream)


def synchronize(stream: object = None) -> None:
    """Waits until the device has done what ``stream`` was given, or, with ``None``, all streams of
    the device that is current. Other threads of Python run meanwhile.

    :raises GpuError: there is no GPU, or a kernel has failed.
    """
    _core.gpu_synchronize(None if stream is None else handle_of(stream))
