# SPDX-License-Identifier: Apache-2.0
"""Tracing what a GPU does for this process."""

from __future__ import annotations

import glob
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable

from pystrobe import _core
from pystrobe._errors import Error, GpuError
from pystrobe.gpu._imports import WhenImported
from pystrobe.gpu._torch import MODULES, WatchedBackward, WatchedProfiler

# Where the packages of NVIDIA's on PyPI keep CUPTI: of CUDA 12 and before, and of 13 and later.
_IN_PACKAGES = ("nvidia/cuda_cupti/lib", "nvidia/cu[0-9]*/lib")
# In a toolkit.
_IN_TOOLKITS = ("extras/CUPTI/lib64", "lib64")
# The last so many works of a timeline: 56 MB.
_SPANS = 1 << 20


def _major_of(path: str) -> int:
    found = re.search(r"\.so\.(\d+)", path)
    return int(found.group(1)) if found else 0


def library_paths() -> list[str]:
    """Where CUPTI may be: where ``LD_LIBRARY_PATH`` says comes first, then that of the CUDA which
    PyTorch was built for, then the latest that the driver is new enough for."""
    named = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [os.path.join(path, folder) for path in sys.path if path for folder in _IN_PACKAGES]
    folders += [os.path.join(home, folder) for home in homes if home for folder in _IN_TOOLKITS]
    torch = sys.modules.get("torch")
    version = getattr(getattr(torch, "version", None), "cuda", None)
    wanted = int(str(version).split(".", maxsplit=1)[0]) if version else 0
    latest = _core.gpu_driver_version() // 1000

    def rank(path: str) -> tuple[bool, int]:
        return _major_of(path) != wanted, -_major_of(path)

    found = [*_found_in(named), *sorted(_found_in(folders), key=rank)]
    return [path for path in dict.fromkeys(found) if _major_of(path) <= latest]


def _found_in(folders: list[str]) -> list[str]:
    patterns = [os.path.join(folder, "libcupti.so.*") for folder in folders if folder]
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


class Trace:
    """From its making until :meth:`stop`.

    :param timeline: of each work when it was, and when it was launched; of each range when it was.
    :param records: ``False``: launches alone are counted; nobody is asked what became of them.
    :param of_gpu: ``False``: ranges alone, which need no GPU.
    :raises GpuError: there is no driver or no CUPTI, or another profiler has it.
    """

    def __init__(self, *, timeline: bool, records: bool = True, of_gpu: bool = True) -> None:
        spans = _SPANS if timeline else 0
        self._trace: _core.GpuTrace | _core.RangeTrace
        self._watched: list[WatchedBackward | WatchedProfiler] = []
        self._imports: WhenImported | None = None
        self._watch_lock = threading.RLock()  # a signal's handler may stop what watches
        if of_gpu:
            self._trace = _core.GpuTrace(library_paths(), spans, records)
            self._watched = [WatchedBackward(), WatchedProfiler()]
            self._imports = WhenImported(MODULES, self._watch)
        else:
            self._trace = _core.RangeTrace(spans)

    def restart(self) -> None:
        """Waits for the devices; what was done until now counts for nothing."""
        self._watch()
        self._trace.restart()

    def stop(self) -> _core.GpuWork:
        """Waits for the devices, and ends."""
        self.restore()
        return self._trace.stop()

    def watch_with(self, sampler: _core.OwnSampler) -> None:
        """What it tells is kept in the sampler's recording now and then. It goes on until the
        sampler has ended."""
        if isinstance(self._trace, _core.GpuTrace):
            sampler.watch_gpu(self._trace)

    def drop(self) -> None:
        """Ends; what was seen is of no interest."""
        self.restore()
        trace = self._trace
        del self._trace
        if isinstance(trace, _core.GpuTrace):
            trace.drop()  # a sampler may have it still

    def _watch(self) -> None:
        with self._watch_lock:
            for watched in self._watched:
                watched.watch()

    def restore(self) -> None:
        """The program has again what was put in place of it."""
        imports, self._imports = self._imports, None
        if imports is not None:
            imports.stop()
        with self._watch_lock:
            watched, self._watched = self._watched, []
            for one in watched:
                one.restore()

    def abandon(self) -> None:
        """The same in a child of fork(), where another thread's lock is held for ever."""
        self._watch_lock = threading.RLock()
        self.restore()


def begin_or_warn(*, timeline: bool, records: bool = True) -> tuple[Trace | None, str]:
    """A trace beside something else, which goes on without where there can be none: then of ranges
    alone, and with why."""
    try:
        return Trace(timeline=timeline, records=records), ""
    except GpuError as error:
        text = f"the GPU is not profiled: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=_level_of_the_caller())
        failure = error.message
    try:
        return Trace(timeline=timeline, of_gpu=False), failure
    except Error:
        return None, failure


def _level_of_the_caller() -> int:
    """``stacklevel`` of the first frame that is not the package's, for who calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("pystrobe."):
        frame, level = frame.f_back, level + 1
    return level


def works_of(run: Callable[[], object]) -> dict[str, int] | None:
    """What one call puts on the devices: kernels, copies and sets by their labels, with how
    many, in the order of their time. ``None`` where it cannot be seen: CUPTI is not there, or
    another profiler has it, or this process' frames cannot be read.
    """
    from pystrobe._profile import Profile

    try:
        trace = Trace(timeline=False)
    except Error:
        return None
    try:
        run()
    finally:
        work = trace.stop()
    found = Profile(_core.gpu_recording(work)).gpu
    works: dict[str, int] = {}
    for kernel in found.kernels if found is not None else ():
        works[kernel.label] = works.get(kernel.label, 0) + kernel.count
    return works
