# SPDX-License-Identifier: Apache-2.0
"""Sampling this process, from inside."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union

from pystrobe import _core, _output
from pystrobe._check import check_called, check_gpu, check_output, check_sampling
from pystrobe._errors import Error, InvalidArgumentError
from pystrobe._turn import Turn

if TYPE_CHECKING:
    from pystrobe._averages import Averages
    from pystrobe._follow import Child, NameOfChild
    from pystrobe._profile import Profile
    from pystrobe.gpu._schedule import Action
    from pystrobe.gpu._trace import Trace

ProfilerMode = Literal["cpu", "wall", "gpu"]
ProfilerThreads = Literal["all", "current"]
#: What is told of a GPU.
ProfilerGpu = Union[bool, Literal["launches"]]

_DEFAULT_RATE = 1000.0
_DEFAULT_MAX_OVERHEAD = 0.01
_RECORDING = ("RECORD", "RECORD_AND_SAVE")
_ACTIONS = ("NONE", "WARMUP", *_RECORDING)
_METRICS: dict[str, Literal["gpu", "cpu"]] = {
    "self_cuda_time_total": "gpu",
    "self_device_time_total": "gpu",
    "self_cpu_time_total": "cpu",
}

_turn = Turn()
_running: Profiler | None = None


class Profiler:
    """Samples the threads of this process between :meth:`start` and :meth:`stop`.

    >>> with pystrobe.Profiler() as profiler:
    ...     work()
    >>> profiler.profile.print()

    ``mode="cpu"`` asks where CPU time goes, in Python threads and others. Each thread is sent
    SIGURG when it has used a period of CPU time, and looks where it stands; a thread that waits
    costs nothing. A handler that the program has for SIGURG is called for the program's own
    signals; one that is set while the profiler runs takes the signal away from it.

    ``mode="wall"`` asks where elapsed time goes, waiting included, in Python threads. Threads of
    pystrobe do what ``pystrobe attach`` does: they take the CPU of the running thread for some
    microseconds while they copy its frames. No signal is sent, so no system call of the program
    ends with EINTR. Its :class:`Profile` shows CPU time and the time with the interpreter's lock
    too.

    Neither runs any Python, or takes the interpreter's lock. One profiler can run at a time.

    ``gpu=True`` asks besides what a GPU did, and which Python call asked for it: every kernel, copy
    and set, by CUPTI. ``mode="gpu"`` is that alone. Where there is no
    GPU, or another profiler has CUPTI, a warning says so, and the rest is sampled; ``mode="gpu"``
    raises :class:`GpuError` then.

    ``gpu="launches"`` counts what each call puts on a GPU, and how long threads wait for it, and
    does not ask the GPU: there are no times of kernels, in :meth:`key_averages` either, and no idle
    time. It costs a launch least, and is meant to be left on.

    With a ``schedule`` some steps of a loop are recorded, and :meth:`step` tells where one ends:

    >>> schedule = gpu.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> with pystrobe.Profiler(gpu=True, schedule=schedule) as profiler:
    ...     for batch in batches:
    ...         train(batch)
    ...         profiler.step()
    >>> print(profiler.key_averages().table(sort_by="self_cuda_time_total"))

    :param mode: ``"cpu"``, ``"wall"`` or ``"gpu"``.
    :param rate: samples a second: of CPU time of each thread, or of elapsed time. ``None``: 1,000;
        by wall time as many of them as ``max_overhead`` allows.
    :param max_overhead: by wall time, the share of its time that the program may be held for, as a
        fraction; a lower rate keeps it. ``None``: 0.01 where no rate is given, no limit where one
        is.
    :param native: by CPU time, show C and C++ functions too: those of extension modules and of
        the libraries they use, each between the Python functions that called it and that it
        called. How the interpreter itself works is left out. Names are read from the symbol tables
        and the debug information of the files, inlined functions included where there is some.
    :param threads: ``"all"``; or ``"current"``, by CPU time: no thread but the one that starts the
        profiler.
    :param gpu: what a GPU does, too; ``"launches"``: what it was given to do.
    :param timeline: with a GPU, keep each work by itself, the last million, for
        :meth:`export_chrome_trace`. Without, they are summed up and take no more memory with time.
    :param schedule: what is done in the step of a number; of :func:`pystrobe.gpu.schedule`, or of
        ``torch.profiler.schedule``. ``None``: all is recorded.
    :param on_trace_ready: called with the profiler when a schedule has made a profile.
    :param output: a file, to which :meth:`stop` saves the profile.
    :param follow_fork: in a child made by ``os.fork``, or by ``multiprocessing`` with that, begin
        anew. Its recording goes to a file of its own beside ``output``, which must be given:
        ``work.1234.html`` beside ``work.html``, by its process id; written meanwhile as
        ``work.1234.strobe``, which is what a child that is killed leaves. Not of the GPU.
    :raises InvalidArgumentError: for any value that is not one of those.
    """

    def __init__(
        self,
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
    ) -> None:
        check_sampling(mode, rate, max_overhead, native, threads)
        if max_overhead is None:
            max_overhead = _DEFAULT_MAX_OVERHEAD if rate is None else 0.0
        self._mode: ProfilerMode = mode
        self._rate = _DEFAULT_RATE if rate is None else rate
        self._max_overhead = max_overhead
        self._native = native
        self._threads: ProfilerThreads = threads
        check_gpu(mode, gpu, timeline)
        check_called(schedule, on_trace_ready)
        check_output(output, follow_fork, mode, timeline, schedule)
        self._gpu = bool(gpu) or mode == "gpu"
        self._gpu_failure = ""  # why there is none, where it was asked for
        self._records = gpu != "launches"
        if self._gpu:
            # NVTX looks for a tool when a library calls it first, which may be soon.
            import pystrobe.gpu
        self._timeline = timeline
        self._schedule = schedule
        self._output = output
        self._follow_fork = follow_fork
        if follow_fork:
            import pystrobe._follow  # noqa: F401
        self._on_trace_ready = on_trace_ready
        self._place: str | None = None  # of the output, from the root
        self._name_of_child: NameOfChild | None = None  # where they are followed
        self._child: Child | None = None  # where this process is one
        self._step = 0
        self._action = "NONE"
        self._range: int | None = None  # of the step
        self._fd: int | None = None
        self._sampler: _core.OwnSampler | None = None
        self._trace: Trace | None = None
        self._profile: Profile | None = None
        self._moved_because: str | None = None  # why the file of _start() has not all of it
        self._whole = True  # the profile has

    @property
    def profile(self) -> Profile:
        """What was sampled, once it was stopped."""
        if self._profile is None:
            cure = "call start() and stop(), or use it with `with`"
            if self._schedule is not None:
                cure = f"the schedule has recorded nothing until step {self._step}: step() more"
            raise Error("there is no profile yet", cure)
        return self._profile

    def start(self) -> None:
        """Returns when the sampling has begun: every thread there is is watched. With a schedule
        that waits first, it has not.

        :raises Error: another profiler runs, or this process cannot be sampled (which says why).
        :raises InvalidArgumentError: no file can be made where ``output`` says.
        """
        self._start(None)

    def _start(self, fd: int | None) -> None:
        """``fd``: of a file that takes the recording while it is made; ``None``: memory."""
        if not self._start_alone(fd):
            raise Error(
                "a profiler runs in this process already",
                "stop it first: one at a time. `pystrobe run --gpu` and --in-process start one",
            )

    def _start_alone(self, fd: int | None) -> bool:
        """``False``: another one runs, and nothing has begun."""
        global _running
        _turn.check()
        with _turn.lock:
            if _running is not None:
                return False
            self._profile = None
            if fd is None:
                # Later it would be sampled, or could not be loaded any more (chroot, setuid).
                import pystrobe._profile  # noqa: F401
            if self._output is not None and self._child is None:
                self._find_place(self._output)
            self._fd = fd
            self._step = 0
            self._action = self._action_of(0)
            # Before the rest: whatever interrupts that leaves what can be stopped.
            _running = self
            try:
                if self._action != "NONE":
                    self._begin()
                self._open_step()
            except BaseException:
                self._drop()
                _running = None
                raise
            return True

    def _find_place(self, output: str | os.PathLike[str]) -> None:
        self._place = _output.check_place(output)
        if self._follow_fork:
            from pystrobe._follow import beside

            self._name_of_child = beside(self._place)

    def _start_in(self, child: Child) -> None:
        """Anew, in a child made by fork."""
        self._child = child
        self._gpu = False  # it has no part in what the parent began of it
        self._gpu_failure = ""
        self._start(child.fd)

    def _action_of(self, step: int) -> str:
        if self._schedule is None:
            return "RECORD"
        action: Action = self._schedule(step)
        name: str = getattr(action, "name", "")
        if name not in _ACTIONS:
            raise InvalidArgumentError(
                f"the schedule gave {action!r} for step {step}",
                "what gpu.schedule() or torch.profiler.schedule() gives",
            )
        return name

    def _begin(self) -> None:
        """What the action asks for, of which nothing has begun; or after a warm-up."""
        if self._gpu and self._trace is None:
            self._trace = self._traced()
        elif self._trace is not None:
            self._trace.restart()
        if self._action == "WARMUP" or self._mode == "gpu":
            return
        self._sampler = _core.OwnSampler(
            self._mode == "cpu",
            self._rate,
            self._max_overhead,
            self._native,
            self._threads == "current",
            _core.__version__,
            self._gpu_failure,
            self._fd,
        )
        if self._trace is not None:
            self._trace.watch_with(self._sampler)
        self._sampler.start()

    # By the name that torch.profiler gives a step, which tools look for in a timeline. In sums
    # steps are one range, as what is in them is.
    def _open_step(self) -> None:
        self._close_step()
        if self._gpu and self._schedule is not None:
            number = f"#{self._step}" if self._timeline else ""
            self._range = _core.gpu_range_start(f"ProfilerStep{number}")

    def _close_step(self) -> None:
        number, self._range = self._range, None
        if number is not None:
            _core.gpu_range_end(number)

    def _traced(self) -> Trace | None:
        from pystrobe.gpu._trace import Trace, begin_or_warn

        if self._mode == "gpu":
            return Trace(timeline=self._timeline, records=self._records)
        trace, self._gpu_failure = begin_or_warn(timeline=self._timeline, records=self._records)
        return trace

    def step(self) -> None:
        """A step of the schedule has ended, and the next one begins. Where that is another thing to
        do, waits until the devices have done what they were given.

        :raises Error: there is no schedule, or the profiler does not run.
        """
        if self._schedule is None:
            raise Error("the profiler has no schedule", "give it one: Profiler(schedule=...)")
        _turn.check()
        with _turn.lock:
            if _running is not self:
                raise Error("the profiler does not run", "start() it first")
            next_action = self._action_of(self._step + 1)
            self._close_step()
            last, self._action = self._action, next_action
            self._step += 1
            is_recording = last in _RECORDING
            ends = last == "RECORD_AND_SAVE" or (is_recording and self._action not in _RECORDING)
            recording = self._take() if ends else None
            if not ends:
                if not is_recording and not last == self._action == "WARMUP":
                    self._go_on()
                self._open_step()
                return
        try:
            if recording is not None:
                self._keep(recording)
        finally:
            # Who was called may have stopped it, and another thread may have made a step.
            _turn.check()
            with _turn.lock:
                if _running is self and self._sampler is None and self._trace is None:
                    self._go_on()
                    self._open_step()

    def _go_on(self) -> None:
        if self._action == "NONE":
            self._drop()
            return
        try:
            self._begin()
        except BaseException:
            self._drop()
            self._action = "NONE"
            raise

    def stop(self) -> Profile:
        """Ends the sampling, and saves the profile where an ``output`` was given.

        :raises Error: it does not run, or there is no recording (which says why), as where a
            schedule has recorded nothing; or it could not be saved, and :attr:`profile` has it.
        """
        if _running is not self:
            raise Error("the profiler does not run", "start() it first")
        self._end()
        return self.profile

    def _end(self) -> None:
        recording = self._finish()
        if recording is not None:
            self._keep(recording)

    def _keep(self, recording: _core.Recording) -> None:
        from pystrobe._profile import Profile

        self._profile = Profile(recording)
        if self._child is not None:
            self._child.deliver(self._profile, self._moved_because)
        elif self._place is not None:
            self._profile.save(self._place)
        if self._child is None and self._moved_because is not None:
            kept = "nothing recorded until then is" if self._whole else "some of it is"
            warnings.warn(
                f"{self._MOVED}: {self._moved_because}; {kept} lost", RuntimeWarning, stacklevel=4
            )
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    _MOVED = "sampling ended early"  # where there is _moved_because
    _timeline_failure = ""  # that of calls can fail alone

    def _note_kept(self) -> None:
        """All of it is elsewhere; what its file has, until it was full, is of use as it is."""

    def _finish(self) -> _core.Recording | None:
        """``None``: it does not run, or nothing was being recorded."""
        global _running
        _turn.check()
        with _turn.lock:
            if _running is not self:
                return None
            self._close_step()
            try:
                return self._take() if self._action in _RECORDING else None
            finally:
                self._drop()
                _running = None

    def _drop(self) -> None:
        """Ends what runs, whose recording nobody is to have."""
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.end()
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.drop()

    def _take(self) -> _core.Recording | None:
        """``None``: there was nothing, as between two recordings."""
        trace, sampler = self._trace, self._sampler
        if trace is None and sampler is None:
            return None
        try:
            return self._recorded(sampler, trace)
        finally:
            self._drop()

    def _recorded(
        self, sampler: _core.OwnSampler | None, trace: Trace | None
    ) -> _core.Recording | None:
        if sampler is not None and trace is not None:
            # The devices are waited for now, which is none of the program's doing.
            sampler.end()
        work = trace.stop() if trace is not None else None
        if sampler is None:
            return _core.gpu_recording(work)
        if work is not None:
            sampler.set_gpu(work)
        recording = sampler.stop()
        self._moved_because = sampler.moved_because()
        self._whole = sampler.whole()
        return recording

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if value is None:
            self._end()
            return
        # What the block raised is what its caller is to hear of.
        try:
            self._end()
        except Exception as error:
            warnings.warn(_output.failure(error, self._profile), RuntimeWarning, stacklevel=2)

    def key_averages(self) -> Averages:
        """The functions and kernels of the profile, as ``torch.profiler`` has them."""
        from pystrobe._averages import key_averages

        return key_averages(self.profile)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes what the GPU did, on a row for each stream, with when and from where it was
        launched, as JSON with the fields of ``torch.profiler``: for ui.perfetto.dev and others.

        :raises Error: there is no timeline.
        """
        self.profile.save(path, format="trace-events")

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cuda_time_total"
    ) -> None:
        """Writes a line for each stack, its frames and what it took in microseconds, for tools that
        draw flame graphs.

        :param metric: ``"self_cuda_time_total"`` or ``"self_cpu_time_total"``.
        """
        if metric not in _METRICS:
            raise InvalidArgumentError(
                f"no such metric: {metric!r}", f"one of {', '.join(_METRICS)}"
            )
        self.profile.save(path, format="collapsed", mode=_METRICS[metric], unit="us")

    def _abandon(self) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.abandon()
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.abandon()


def _forget_in_child() -> None:
    """After fork the child has none of the sampler's threads."""
    global _turn, _running
    _turn = Turn()
    running, _running = _running, None
    if running is not None:
        running._abandon()
    _core.OwnSampler.forget_parent()
    if running is not None and running._name_of_child is not None:
        from pystrobe import _follow

        _follow.go_on(running, running._name_of_child)


def _stop_at_exit() -> None:
    """While the interpreter is whole: its memory is about to go."""
    running = _running
    if running is None:
        return
    try:
        running._end()
    # The program may have done anything to what this needs.
    except Exception as error:
        print(f"pystrobe: {_output.failure(error, running._profile)}", file=sys.stderr)


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(_stop_at_exit)
