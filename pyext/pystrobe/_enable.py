# SPDX-License-Identifier: Apache-2.0
"""Sampling or tracing this process from one call to another."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

from pystrobe import _profiler
from pystrobe._check import MODES
from pystrobe._errors import Error, InvalidArgumentError
from pystrobe._profiler import Profiler

if TYPE_CHECKING:
    from pystrobe._profile import Profile
    from pystrobe._profiler import ProfilerGpu, ProfilerMode, ProfilerThreads
    from pystrobe._tracer import Clock, Engine


def check_mode(mode: object) -> None:
    """That it is one of :func:`enable`.

    :raises InvalidArgumentError: it is not.
    """
    known = (*MODES, "trace")
    if mode not in known:
        raise InvalidArgumentError(f"no such mode: {mode!r}", f"one of {', '.join(known)}")


@overload
def enable(
    *,
    mode: ProfilerMode = "cpu",
    rate: float | None = None,
    max_overhead: float | None = None,
    native: bool = False,
    threads: ProfilerThreads = "all",
    gpu: ProfilerGpu = False,
    timeline: bool = False,
    schedule: Callable[[int], Any] | None = None,
    on_trace_ready: Callable[[Profiler], object] | None = None,
    output: str | os.PathLike[str] | None = None,
    follow_fork: bool = False,
) -> None: ...
@overload
def enable(
    *,
    mode: Literal["trace"],
    builtins: bool = False,
    engine: Engine = "auto",
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    stdlib: bool = True,
    timeline: bool = False,
    max_depth: int | None = None,
    clock: Clock = "both",
    gpu: bool = False,
    output: str | os.PathLike[str] | None = None,
) -> None: ...


def enable(*, mode: str = "cpu", **options: Any) -> None:
    """Begins to sample this process. The arguments are those of :class:`Profiler`; or, with
    ``mode="trace"``, begins to trace its calls, and they are those of :class:`Tracer`."""
    check_mode(mode)
    if mode == "trace":
        from pystrobe._tracer import Tracer

        Tracer(**options).start()
    else:
        Profiler(mode=mode, **options).start()  # type: ignore[arg-type]


def disable() -> Profile:
    """Ends what :func:`enable` began, or else whatever profiler or tracer runs in this process, and
    gives what was sampled or traced.

    :raises Error: none runs; or as :meth:`Profiler.stop`.
    """
    profiler = _profiler._running
    if profiler is not None:
        return profiler.stop()
    tracer = getattr(sys.modules.get("pystrobe._tracer"), "_running", None)
    if tracer is not None:
        tracer.stop()
        profile: Profile = tracer.profile()
        return profile
    raise Error("no profiler runs in this process", "call pystrobe.enable() first")
