# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch is watched while a GPU is traced."""

from __future__ import annotations

import collections
import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from pystrobe import _core

# After whose import there is something to be watched.
MODULES = ("torch", "torch.profiler", "torch.autograd.profiler")


class WatchedBackward:
    """PyTorch runs the backward pass on threads of its own, which have no Python frames. So it is
    noted who waits for them: in place of autograd's engine there is one that does it. And where the
    operations were called whose gradients they make."""

    def __init__(self) -> None:
        self._holder: Any = None
        self._engine: Any = None
        self._watching: Any = None
        self._follows = False
        self.watch()

    def watch(self) -> None:
        """Does nothing where PyTorch is not loaded, or another one than is known here."""
        torch = sys.modules.get("torch")
        if torch is None:
            return
        if self._watching is None:
            self._replace(torch)
        if not self._follows:
            views = _views_of(torch)
            self._follows = bool(views) and _core.gpu_follow_nodes(views)

    def _replace(self, torch: Any) -> None:
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


# They give their argument back in another shape, and have no function that copies instead.
_MORE_VIEWS = ("UnsafeView", "UnsafeSplit", "UnsafeSplitWithSizes", "Lift", "LiftFresh")
# From the results of a forward pass, to find one that is not written in Python.
_MOST_NODES = 16


def _views_of(torch: Any) -> list[str]:
    """The operations that launch nothing, as their nodes are called. PyTorch has each a second
    time, as one that copies; where it does not, nobody knows."""
    functions = dir(getattr(getattr(torch, "_C", None), "_functions", None))
    copies = [name for name in functions if name.endswith("_copy")]
    views = {name.split("Backward", maxsplit=1)[0] for name in copies}
    return [*sorted(views), *_MORE_VIEWS] if views else []


def _prove_nodes(tensors: Any) -> bool:
    """Whether one of the nodes that led to these results shows where PyTorch has their numbers."""
    try:
        nodes = [getattr(tensor, "grad_fn", None) for tensor in tensors]
        for node in itertools.islice(_with_earlier(nodes), _MOST_NODES):
            if _core.gpu_prove_nodes(node, node._sequence_nr()):
                return True
    except Exception:
        # A tensor may be any class of the program's. Its backward pass is none of our business.
        return False
    return False


def _with_earlier(nodes: list[Any]) -> Iterator[Any]:
    waiting = collections.deque(nodes)
    while waiting:
        node = waiting.popleft()
        if node is None:
            continue
        if hasattr(node, "_sequence_nr"):
            yield node
        waiting += [earlier for earlier, _ in node.next_functions]


def _watching(engine: Any) -> Any:
    class WatchedEngine(type(engine)):  # type: ignore[misc]
        proved = False

        def run_backward(self, *args: Any, **keywords: Any) -> Any:
            if not self.proved:
                self.proved = _prove_nodes(args[0] if args else ())
            entered = _core.gpu_enter_backward()
            try:
                return super().run_backward(*args, **keywords)
            finally:
                _core.gpu_leave_backward(entered)

    return WatchedEngine()


class WatchedProfiler:
    """``torch.profiler`` cannot have CUPTI meanwhile, and does not say so to Python: it would just
    see no GPU. So it is told as it starts."""

    _BEGINS = (("torch.profiler", "start"), ("torch.autograd.profiler", "__enter__"))

    def __init__(self) -> None:
        self._restores: dict[str, Callable[[], None]] = {}
        self.watch()

    def watch(self) -> None:
        """Does nothing where it is not loaded, or another one than is known here."""
        for module, method in self._BEGINS:
            made = getattr(sys.modules.get(module), "profile", None)
            begin = getattr(made, method, None)
            if begin is not None and module not in self._restores:
                self._restores[module] = _warn_before(made, method, begin)

    def restore(self) -> None:
        for restore in self._restores.values():
            restore()
        self._restores = {}


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
