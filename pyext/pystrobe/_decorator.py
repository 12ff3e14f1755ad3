# SPDX-License-Identifier: Apache-2.0
"""Sampling each call of a function."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, overload

from pystrobe import _profiler
from pystrobe._profiler import Profiler

if TYPE_CHECKING:
    from pystrobe._profile import Profile
    from pystrobe._profiler import ProfilerMode, ProfilerThreads

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
    gpu: bool = False,
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
    gpu: bool = False,
) -> F | Callable[[F], F]:
    """Decorates a function: each call is sampled, and then printed or saved to ``output``.

    A call while a profiler runs (a recursive one, or one in another thread) is not sampled by
    itself: it is part of what that one sees.
    """

    def decorate(wrapped: F) -> F:
        @functools.wraps(wrapped)
        def sampled(*args: object, **keywords: object) -> object:
            if _profiler._running is not None:
                return wrapped(*args, **keywords)
            profiler = Profiler(
                mode=mode,
                rate=rate,
                max_overhead=max_overhead,
                native=native,
                threads=threads,
                gpu=gpu,
            )
            profiler.start()
            try:
                return wrapped(*args, **keywords)
            finally:
                _deliver(profiler.stop(), output)

        return sampled  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def _deliver(profile: Profile, output: str | os.PathLike[str] | None) -> None:
    if output is None:
        profile.print()
    else:
        profile.save(output)
