# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch is watched while a GPU is traced."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

from pystrobe import _core


class WatchedBackward:
    """PyTorch runs the backward pass on threads of its own, which have no Python frames. So it is
    noted who waits for them: in place of autograd's engine there is one that does it."""

    def __init__(self) -> None:
        self._holder: Any = None
        self._engine: Any = None
        self._watching: Any = None
        self.watch()

    def watch(self) -> None:
        """Does nothing where PyTorch is not loaded, or another one than is known here."""
        if self._watching is not None:
            return
        torch = sys.modules.get("torch")
        holder: Any = getattr(getattr(torch, "autograd", None), "Variable", None)
        engine = getattr(holder, "_execution_engine", None)
        if not hasattr(engine, "run_backward"):
            return
        try:
            watching = _watching(engine)
        except TypeError:
            return
        holder._execution_engine = watching
        self._holder, self._engine, self._watching = holder, engine, watching

    def restore(self) -> None:
        """Another tool may have put its own there since."""
        holder = self._holder
        if holder is not None and holder._execution_engine is self._watching:
            holder._execution_engine = self._engine
        self._watching = None


def _watching(engine: Any) -> Any:
    class WatchedEngine(type(engine)):  # type: ignore[misc]
        def run_backward(self, *args: Any, **keywords: Any) -> Any:
            entered = _core.gpu_enter_backward()
            try:
                return super().run_backward(*args, **keywords)
            finally:
                _core.gpu_leave_backward(entered)

    return WatchedEngine()


class WatchedProfiler:
    """``torch.profiler`` cannot have CUPTI meanwhile, and does not say so to Python: it would just
    see no GPU. So it is told as it starts."""

    def __init__(self) -> None:
        self._restores: list[Callable[[], None]] = []
        self.watch()

    def watch(self) -> None:
        """Does nothing where it is not loaded, or another one than is known here."""
        if self._restores:
            return
        for module, method in (
            ("torch.profiler", "start"),
            ("torch.autograd.profiler", "__enter__"),
        ):
            made = getattr(sys.modules.get(module), "profile", None)
            begin = getattr(made, method, None)
            if begin is not None:
                self._restores.append(_warn_before(made, method, begin))

    def restore(self) -> None:
        for restore in self._restores:
            restore()
        self._restores = []


def _warn_before(made: Any, method: str, begin: Callable[..., Any]) -> Callable[[], None]:
    """What undoes it."""

    @functools.wraps(begin)
    def warns(self: Any, *args: Any, **keywords: Any) -> Any:
        if _wants_cuda(self):
            warnings.warn(
                "torch.profiler will see no GPU: pystrobe profiles it, and CUPTI has one user at a "
                "time in a process. Stop pystrobe's profiler first, or take its own timeline: "
                "Profiler(gpu=True, timeline=True) and export_chrome_trace()",
                RuntimeWarning,
                stacklevel=2,
            )
        return begin(self, *args, **keywords)

    setattr(made, method, warns)

    def restore() -> None:
        if getattr(made, method) is warns:
            setattr(made, method, begin)

    return restore


def _wants_cuda(profile: Any) -> bool:
    """Of ``torch.profiler.profile`` or ``torch.autograd.profiler.profile``."""
    activities = getattr(profile, "activities", None)
    if activities is not None:
        return any(getattr(activity, "name", "") == "CUDA" for activity in activities)
    return getattr(profile, "use_device", None) == "cuda"
