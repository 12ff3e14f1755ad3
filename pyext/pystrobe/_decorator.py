# SPDX-License-Identifier: Apache-2.0
"""Sampling each call of a function."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from pystrobe import _output, _profiler
from pystrobe._errors import InvalidArgumentError
from pystrobe._profiler import Profiler

if TYPE_CHECKING:
    from pystrobe._profiler import ProfilerGpu, ProfilerMode, ProfilerThreads

F = TypeVar("F", bound=Callable[..., object])


@overload
def profile(function: F) -> F: ...
@overload
def profile(
    *,
    output: str | os.PathLike[str] | None = None,
    mode: ProfilerMode = "cpu",
    rate: float | None = None,
    max_overhead: float | None = None,
    native: bool = False,
    threads: ProfilerThreads = "all",
    gpu: ProfilerGpu = False,
) -> Callable[[F], F]: ...


def profile(
    function: F | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    mode: ProfilerMode = "cpu",
    rate: float | None = None,
    max_overhead: float | None = None,
    native: bool = False,
    threads: ProfilerThreads = "all",
    gpu: ProfilerGpu = False,
) -> F | Callable[[F], F]:
    """Decorates a function or coroutine: each call is sampled, and then printed or saved to
    ``output``, in place of the call before. The other arguments are those of :class:`Profiler`.

    Where that fails after the call a warning says so, and where the recording is kept: the function
    returns or raises as it would.

    A call while a profiler runs (a recursive one, or one in another thread), or is being started or
    stopped below it, is not sampled by itself: it is part of what that one sees.

    :raises InvalidArgumentError: ``output`` is no name of a format, or what is decorated is a
        generator, a class or no function; or, by the call before it begins, no file can be made
        there.
    :raises Error: by the call before it begins: this process cannot be sampled, which says why.
    """
    if function is not None and not callable(function):
        raise InvalidArgumentError(
            f"no function: {function!r}", "a file goes by its name: @profile(output='work.html')"
        )
    if output is not None:
        _output.check_name(output)

    def begin() -> Callable[[], None]:
        """What is to be done after the call."""
        if _profiler._running is not None or _profiler._turn.is_mine():
            return _nothing
        place = None if output is None else _output.check_place(output)
        profiler = Profiler(
            mode=mode,
            rate=rate,
            max_overhead=max_overhead,
            native=native,
            threads=threads,
            gpu=gpu,
        )
        # Another thread's may have come first.
        return (
            functools.partial(_deliver, profiler, place)
            if profiler._start_alone(None)
            else _nothing
        )

    def decorate(wrapped: F) -> F:
        if inspect.isclass(wrapped):
            raise InvalidArgumentError(
                f"{wrapped.__qualname__} is a class, whose call only makes an object",
                "decorate its methods",
            )
        if inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped):
            raise InvalidArgumentError(
                f"{wrapped.__qualname__} is a generator, whose calls only make one",
                "use `with pystrobe.Profiler()` where it is used",
            )
        sampled: Any
        if inspect.iscoroutinefunction(wrapped):

            @functools.wraps(wrapped)
            async def sampled(*args: object, **keywords: object) -> object:
                end = begin()
                try:
                    return await wrapped(*args, **keywords)
                finally:
                    end()

        else:

            @functools.wraps(wrapped)
            def sampled(*args: object, **keywords: object) -> object:
                end = begin()
                try:
                    return wrapped(*args, **keywords)
                finally:
                    end()

        return cast(F, sampled)

    return decorate if function is None else decorate(function)


def _nothing() -> None:
    """A profiler runs already, and sees the call."""


def _deliver(profiler: Profiler, place: str | None) -> None:
    try:
        profiler._end()  # unless the function has
        profile = profiler.profile
        if place is None:
            profile.print()
        else:
            profile.save(place)
    # The program may have done anything to what this needs.
    except Exception as error:
        text = f"a call was profiled, and then: {_output.failure(error, profiler._profile)}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
