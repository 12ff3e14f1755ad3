# SPDX-License-Identifier: Apache-2.0
"""The device's time for a piece of work, until the figure is steady."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from pystrobe import _core
from pystrobe._check import is_count
from pystrobe._errors import InvalidArgumentError
from pystrobe.gpu._format import format_noise, format_seconds
from pystrobe.gpu._stream import handle_of

_LEAST = {
    "num_warmups": 0,
    "min_samples": 1,
    "min_seconds": 0,
    "max_noise": 0,
    "time_cap": 0,
    "low_clock": 0,
}
_COUNTS = ("num_warmups", "min_samples")
_SWITCHES = ("flush_l2", "hold_back")


@dataclass(frozen=True)
class Summary:
    """Of times in seconds."""

    count: int
    min: float
    max: float
    mean: float
    median: float
    first_quartile: float
    third_quartile: float
    noise: float
    """Standard deviation by the mean."""

    @property
    def iqr(self) -> float:
        """From the first quartile to the third."""
        return self.third_quartile - self.first_quartile


@dataclass(frozen=True)
class Measurement:
    """What :func:`measure` found."""

    name: str
    gpu: Summary
    """Of the device: from when it begins with the work until it has done it."""
    cpu: Summary
    """Of the call, by the clock on the wall: what it takes to launch the work."""
    gpu_seconds: tuple[float, ...]
    """Of each sample."""
    cpu_seconds: tuple[float, ...]
    stop: Literal["quiet", "time cap"]
    """Why there are no more: the noise is low or steady, or the time was up first."""
    throttled: int
    """Samples left out, as the device ran below its clock."""
    empty_seconds: float | None
    """What a kernel that does nothing takes, measured in the same way; ``None`` where the stream
    was not held back."""
    clock_hz: float | None
    """Of the multiprocessors, median of the samples."""

    @property
    def net(self) -> float:
        """The median, less what an empty kernel takes: what the work takes by itself."""
        return max(0.0, self.gpu.median - (self.empty_seconds or 0.0))

    @property
    def bound(self) -> Literal["launch", "gpu"]:
        """Whether in a loop the device would wait for launches, or they for it."""
        return "launch" if self.cpu.median > self.gpu.median else "gpu"

    @property
    def verdict(self) -> str:
        """In words."""
        cpu, gpu = format_seconds(self.cpu.median), format_seconds(self.gpu.median)
        if self.bound == "launch":
            return f"launch-bound: it takes {cpu} to launch what the GPU does in {gpu}"
        return f"GPU-bound: the GPU takes {gpu} for what is launched in {cpu}"

    def __str__(self) -> str:
        gpu = self.gpu
        lines = [
            f"{self.name}: {format_seconds(gpu.median)} of the GPU"
            f" (quartiles {format_seconds(gpu.first_quartile)} to"
            f" {format_seconds(gpu.third_quartile)}, min {format_seconds(gpu.min)}, noise"
            f" {format_noise(gpu.noise, gpu.count)}, {gpu.count} samples)",
            self.verdict,
        ]
        if self.empty_seconds is not None:
            lines.append(
                f"an empty kernel takes {format_seconds(self.empty_seconds)} so;"
                f" less that: {format_seconds(self.net)}"
            )
        if self.stop == "time cap":
            lines.append("the time was up before the noise was low or steady")
        if self.throttled:
            lines.append(f"{self.throttled} samples left out: the GPU ran below its clock")
        return "\n".join(lines)


def _summary(seconds: Sequence[float]) -> Summary:
    return Summary(**_core.gpu_summarize(seconds))


@dataclass(frozen=True)
class MeasureOptions:
    """What :func:`measure` takes by name, checked."""

    stream: object = None
    num_warmups: int = 1
    flush_l2: bool = True
    hold_back: bool = True
    min_samples: int = 10
    min_seconds: float = 0.05
    max_noise: float = 0.005
    time_cap: float = 10.0
    low_clock: float = 0.75
    patience: float = 2.0

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= least:
                raise InvalidArgumentError(f"{name} is {value!r}", f"a number, {least} or more")
        for name in _COUNTS:
            value = getattr(self, name)
            if not is_count(value, _LEAST[name]):
                raise InvalidArgumentError(
                    f"{name} is {value!r}", f"a whole number, {_LEAST[name]} or more"
                )
        for name in _SWITCHES:
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InvalidArgumentError(f"{name} is {value!r}", "True or False")
        if self.low_clock > 1:
            raise InvalidArgumentError(
                f"low_clock is {self.low_clock!r}", "a share of the clock: 1 at most"
            )
        if not isinstance(self.patience, (int, float)) or not 0 < self.patience <= 600:
            raise InvalidArgumentError(
                f"patience is {self.patience!r}", "seconds: above 0, 600 at most"
            )

    @classmethod
    def of(cls, function: str, options: dict[str, Any]) -> MeasureOptions:
        """Of what ``function`` was given by name."""
        known = {field.name for field in fields(cls)}
        for name in options:
            if name not in known:
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        return cls(**options)

    def to_core(self) -> _core.GpuMeasureOptions:
        options = _core.GpuMeasureOptions()
        options.stream = handle_of(self.stream)
        options.num_warmups = self.num_warmups
        options.flush_l2 = self.flush_l2
        options.hold_back = self.hold_back
        options.min_samples = self.min_samples
        options.min_seconds = self.min_seconds
        options.max_noise = self.max_noise
        options.time_cap = self.time_cap
        options.low_clock = self.low_clock
        options.patience = self.patience
        return options


def check_callable(function: object, what: str) -> None:
    """Raises InvalidArgumentError unless it can be called; ``what`` names it."""
    if not callable(function):
        raise InvalidArgumentError(
            f"{what} is {function!r}", "a function, which is called: lambda: torch.square(x)"
        )


def measure_in_turn(
    named: dict[str, Callable[[], object]], options: MeasureOptions
) -> list[Measurement]:
    """As :func:`measure`, of several: a sample of each in turn."""
    measured = _core.gpu_measure(list(named.values()), options.to_core())
    return [
        Measurement(
            name=name,
            gpu=_summary(one["gpu_seconds"]),
            cpu=_summary(one["cpu_seconds"]),
            gpu_seconds=tuple(one["gpu_seconds"]),
            cpu_seconds=tuple(one["cpu_seconds"]),
            stop=one["stop"],
            throttled=one["throttled"],
            empty_seconds=one["empty_seconds"],
            clock_hz=one["clock_hz"],
        )
        for name, one in zip(named, measured)
    ]


def measure(run: Callable[[], object], *, name: str | None = None, **options: Any) -> Measurement:
    """Measures the device's time for what ``run`` puts on a stream, until the figure is steady.

    >>> print(gpu.measure(lambda: torch.square(x)))

    Each sample: the device's L2 cache is flushed; the stream is held back while ``run`` puts its
    work on it, so that the time to launch it is not in the device's; then it is let go between two
    events. Samples during which the multiprocessors ran below their clock are left out. There are
    enough of them once the noise (standard deviation by the mean) is below ``max_noise``, or has
    settled, as nvbench does it.

    ``run`` must not wait for the device while its stream is held back, nor launch more than some
    500 kernels: after ``patience`` seconds the stream is let go all the same, and that is an error.

    :param name: for the report; else the function's.
    :param stream: that ``run`` uses; as for :func:`timer`.
    :param num_warmups: calls before the first sample.
    :param flush_l2: ``False``: with what the last sample left in the cache.
    :param hold_back: ``False``: for work that waits for the device by itself.
    :param min_samples: at least so many,
    :param min_seconds: and until they come to so much of the device's time.
    :param max_noise: a share of the mean.
    :param time_cap: seconds after which it ends in any case; of :func:`compare` for each function.
    :param low_clock: samples below so much of the device's highest clock are left out; 0: none.
    :param patience: seconds for which a stream is held back at most.
    :raises GpuError: there is no GPU, or its driver refused, which it tells.
    """
    check_callable(run, "what to measure")
    own_name = name if name is not None else getattr(run, "__name__", repr(run))
    return measure_in_turn({own_name: run}, MeasureOptions.of("measure", options))[0]
