# SPDX-License-Identifier: Apache-2.0
"""A few trials of one function."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pystrobe import _core
from pystrobe._check import is_count
from pystrobe._errors import InvalidArgumentError
from pystrobe.gpu._devices import available
from pystrobe.gpu._format import format_seconds
from pystrobe.gpu._measure import check_callable
from pystrobe.gpu._stream import handle_of


@dataclass(frozen=True)
class Benchmark:
    """What :func:`benchmark` found, of each trial."""

    description: str
    wall_seconds: tuple[float, ...]
    """Elapsed time, until the device has done the work."""
    gpu_seconds: tuple[float, ...] | None
    """Between two events around the work; ``None`` where there is no GPU."""

    @property
    def mean(self) -> float:
        """Of the elapsed time, in seconds."""
        return sum(self.wall_seconds) / len(self.wall_seconds)

    @property
    def gpu_mean(self) -> float | None:
        """Of the device's time, in seconds."""
        return sum(self.gpu_seconds) / len(self.gpu_seconds) if self.gpu_seconds else None

    def __str__(self) -> str:
        gpu = f", {format_seconds(self.gpu_mean)} of the GPU" if self.gpu_mean is not None else ""
        trials = len(self.wall_seconds)
        return (
            f"{self.description}: {format_seconds(self.mean)} elapsed{gpu}, mean of {trials} trials"
            f" ({format_seconds(min(self.wall_seconds))} to"
            f" {format_seconds(max(self.wall_seconds))})"
        )


def benchmark(
    description: str,
    run: Callable[[], object],
    num_warmups: int = 1,
    num_trials: int = 3,
    *,
    stream: object = None,
) -> Benchmark:
    """Runs ``run`` some times, waiting for its stream after each, and tells what it took.

    >>> print(gpu.benchmark("matmul", lambda: a @ b))
    matmul: 1.52 ms elapsed, 1.49 ms of the GPU, mean of 3 trials (1.51 ms to 1.53 ms)

    Without a GPU only the elapsed time is told. Both include what it takes to launch the work,
    where the device waits for that; :func:`measure` keeps it out.

    :param num_warmups: trials before the first that counts: of what is compiled or loaded then.
    :param stream: as for :func:`timer`.
    """
    check_callable(run, "what to run")
    if not is_count(num_trials, least=1) or not is_count(num_warmups):
        raise InvalidArgumentError(
            f"num_warmups is {num_warmups!r} and num_trials {num_trials!r}",
            "at least 0 warm-ups and 1 trial",
        )
    has_gpu = available()
    handle = handle_of(stream) if has_gpu else 0
    for _ in range(num_warmups):
        run()
    if has_gpu:
        _core.gpu_synchronize(handle)
    wall: list[float] = []
    device: list[float] = []
    for _ in range(num_trials):
        events = _core.GpuTimer(handle) if has_gpu else None
        begin = time.perf_counter()
        if events is None:
            run()
        else:
            events.start()
            run()
            events.stop()
            device.append(events.wait())
        wall.append(time.perf_counter() - begin)
    return Benchmark(description, tuple(wall), tuple(device) if has_gpu else None)
