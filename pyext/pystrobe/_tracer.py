# SPDX-License-Identifier: Apache-2.0
"""Tracing every call of this process, from inside."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TextIO

from pystrobe import _core, _output
from pystrobe._call_cost import Cost, cost_of_a_call
from pystrobe._check import is_utf8
from pystrobe._errors import Error, InvalidArgumentError

if TYPE_CHECKING:
    from pystrobe._profile import Profile
    from pystrobe._report import Mode
    from pystrobe.gpu._trace import Trace

Engine = Literal["auto", "setprofile", "frame-eval", "monitoring"]
Clock = Literal["both", "wall", "cpu"]
CallOrder = Literal["self", "total", "self_cpu", "total_cpu", "calls"]

_CLOCKS = ("both", "wall", "cpu")
#: Of ``max_depth``: half of what there is room for, as calls that had begun before take some.
_MOST_DEPTH = 131_072
_OPTIONS_OF_ENGINES = {
    "PyEval_SetProfile": "setprofile",
    "frame evaluation": "frame-eval",
    "sys.monitoring": "monitoring",
}
_ENGINES = ("auto", *_OPTIONS_OF_ENGINES.values())
#: How this package begins and ends the tracing is no part of the program.
_HIDDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")

_running: Tracer | None = None


@dataclass(frozen=True)
class CallTimes:
    """What all calls of a function, or those from one caller, come to. Times are in seconds."""

    function: str
    file: str
    line: int  #: of its ``def``; 0: a function of C
    calls: int  #: that began while they were traced; a generator's once, however often it goes on
    recursive_calls: int  #: of those: within another call of the function
    running: int  #: calls that had begun before the tracing did; not in ``calls``
    self: float  #: elapsed, in the function itself
    total: float  #: and in what it called; a recursive call is not counted again
    self_cpu: float | None  #: the same, of CPU time; None with ``clock="wall"``
    total_cpu: float | None
    finished: int  #: of a coroutine's calls: those that ended, in the thread where they began
    lifetime: float  #: of these, from the first step to the end, all that they waited included


@dataclass(frozen=True)
class FunctionCalls(CallTimes):
    callers: tuple[CallTimes, ...]  #: by caller, that of each; one without a name: nobody traced


@dataclass(frozen=True)
class ThreadCalls:
    tid: int  #: 0: all threads together
    name: str
    functions: tuple[FunctionCalls, ...]


class Tracer:
    """Traces every call of Python functions, in all threads, while it runs.

    >>> with pystrobe.Tracer() as tracer:
    ...     work()
    >>> tracer.print()
    >>> tracer.call_counts()                     # {'27:fibonacci': 21891, '33:task': 1}

    Counts are exact. Each call has its elapsed time and the CPU time of its thread, both of the
    function itself and with all that it called. A generator or a coroutine is a call from its first
    step to its last, and has the time that it is on the stack; of coroutines that ended there is
    the time from beginning to end, too (:attr:`CallTimes.lifetime`). Calls that had begun before
    are told as ``running``. What threads do that were started meanwhile is in it, and so is what
    began in C libraries where it calls Python; with ``"setprofile"`` only of threads that
    ``threading`` made.

    A child made by fork is not traced.

    :param builtins: functions of C too, each of which costs time as well.
    :param engine: ``"monitoring"`` (sys.monitoring, from 3.12 on) takes a tool id that is free, and
        nobody's; ``"frame-eval"`` (PEP 523, up to 3.11, but not 3.11.0 to 3.11.3) evaluates with
        what was set before, and hands over to ``"setprofile"`` where the C stack runs short;
        ``"setprofile"`` (PyEval_SetProfile) is there on every version. ``"auto"``: the cheapest
        that can be had.
    :param include: only functions that one of these patterns fits, ``exclude``: none that one
        fits. A pattern is a shell's, in which ``*`` matches slashes too: for the file as the
        function has it, its module (what the file is called from a directory of ``sys.path``), its
        qualified name (up to 3.10: its name), or module and name with a dot between; or it names a
        directory that the file is below, or a package that the module is in. What
        a function does that is left out counts for its caller; of its own calls ``"monitoring"`` is
        not told again, the other hooks are.
    :param stdlib: ``False``: functions of the standard library are left out.
    :param max_depth: calls that are deeper are left out: the time of what they do is that of their
        caller at this depth. Counted from 1, a thread's first traced call, without those that had
        begun before; what ``include``, ``exclude`` and ``stdlib`` leave out is no level.
        :attr:`left_out` has how many they were. ``None``: all calls are told.
    :param clock: ``"wall"``: elapsed time alone, and no CPU time is read or told; ``"cpu"``: both,
        and tables and files have CPU time first.
    :param timeline: keeps each call by itself, with when it began and ended, for
        ``save("x.trace.json")`` and ``"x.perfetto-trace"``. They are written while the program
        runs, one or two bytes a call, to a file in ``$TMPDIR``, ``/var/tmp`` or ``/tmp`` that goes
        away with the tracer; where it takes them more slowly than they come, the program waits.
    :param gpu: what a GPU does, too, by the calls that asked for it; as :class:`Profiler` has it.
    :param output: a file, to which :meth:`stop` saves the trace, as :meth:`save` does. Where the
        program ends before, it is saved then.
    :raises InvalidArgumentError: for any other value.
    """

    def __init__(
        self,
        *,
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
    ) -> None:
        if engine not in _ENGINES:
            raise InvalidArgumentError(
                f"no such engine: {engine!r}", f"one of {', '.join(_ENGINES)}"
            )
        if clock not in _CLOCKS:
            raise InvalidArgumentError(f"no such clock: {clock!r}", f"one of {', '.join(_CLOCKS)}")
        library = [] if stdlib else _library()
        self._timeline = bool(timeline)
        self._max_depth = _depth(max_depth)
        self._clock = clock
        _check_flags(builtins=builtins, stdlib=stdlib, timeline=timeline, gpu=gpu)
        if output is not None:
            _output.check_name(output, calls=True, timeline=timeline)
        self._output = output
        self._place: str | None = None  # of the output, from the root
        self._gpu = gpu
        if gpu:
            # NVTX looks for a tool when a library calls it first, which may be soon.
            import pystrobe.gpu  # noqa: F401
        self._trace: Trace | None = None
        self._options = (
            engine,
            bool(builtins),
            _patterns("include", include),
            _patterns("exclude", exclude),
            library,
        )
        self._tracer = self._make(whole_program=False)
        self._file: _LentFile | None = None
        #: What tracing a call and its end costs, about: that of a call within calls, as measured
        #: before the first trace. A function's own time has a part of it for each call of
        #: it, and one for each that it makes.
        self.ns_per_call = 0.0
        self._cost = Cost("")
        self._moved_because: str | None = None  # why that file has not all of it

    def _make(self, whole_program: bool) -> _core.CallTracer:
        return _core.CallTracer(
            *self._options, whole_program, _HIDDEN, self._timeline, self._max_depth, self._clock
        )

    def start(self) -> None:
        """From here on every call is traced.

        :raises Error: calls are traced already, or somebody else has the hooks (which says who).
        :raises InvalidArgumentError: no file can be made where ``output`` says.
        """
        global _running
        if _running is self:
            raise Error("this tracer runs already", "stop() it first")
        if self._output is not None:
            self._place = _output.check_place(self._output)
        _running, before = self, _running
        try:
            if self._gpu:
                from pystrobe.gpu._trace import begin_or_warn

                self._trace, failure = begin_or_warn(timeline=self._timeline)
                self._tracer.set_gpu_failure(failure)
            self._measure(self._options[0])
            self._tracer.start(None if self._file is None else self._file.descriptor())
        except BaseException:
            _running = before
            trace, self._trace = self._trace, None
            if trace is not None:
                trace.drop()
            raise

    def _measure(self, engine: str) -> None:
        self._cost = cost_of_a_call(engine, self._options[1], self._clock == "wall")
        self.ns_per_call = self._cost.whole

    def _start_program(self, fd: int) -> None:
        """The same, of a program that is not loaded yet.

        ``fd``: of a file that takes the recording in the end.
        """
        self._file = _LentFile(fd)
        self._tracer = self._make(whole_program=True)
        self.start()

    def stop(self) -> None:
        """No call is traced any more, and where an ``output`` was given, the trace is saved. Does
        nothing where none was.

        :raises Error: it could not be saved, and :meth:`profile` has it.
        """
        ran = _running is self
        self._end()
        if ran and self._place is not None:
            self.save(self._place)

    def _end_and_save(self) -> str:
        """The same where an exception has nobody to go to, as there is another one, or no program:
        gives what went wrong with the saving; empty: nothing."""
        ran = _running is self
        self._end()
        if not ran or self._place is None:
            return ""
        profile = None
        try:
            profile = self.profile()
            profile.save(self._place)
        except Exception as error:
            return _output.failure(error, profile)
        return ""

    def _end(self) -> None:
        global _running
        try:
            self._tracer.stop()
        finally:
            if _running is self:
                _running = None
            trace, self._trace = self._trace, None
            if trace is not None:
                self._tracer.set_gpu(trace.stop())
        option = _OPTIONS_OF_ENGINES.get(self._tracer.engine)
        if option is not None and self._cost.engine not in ("", self._tracer.engine):
            # What is the cheapest that can be had changes with what others take.
            with contextlib.suppress(Error, MemoryError):
                self._measure(option)

    def __enter__(self) -> Tracer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if value is None:
            self.stop()
        elif failure := self._end_and_save():
            warnings.warn(failure, RuntimeWarning, stacklevel=2)

    @property
    def engine(self) -> str:
        """What tells of the calls."""
        return self._tracer.engine

    @property
    def trouble(self) -> str:
        """What is missing and why, where something is: calls, where somebody took the hooks away
        meanwhile; the end of a timeline, where there was no room for it."""
        trouble = self._tracer.facts()["trouble"]
        if self._timeline and not trouble:
            # There may be no room for what is left to write.
            with contextlib.suppress(Error, MemoryError):
                self._recorded(None)
            trouble = self._tracer.facts()["trouble"]
        return str(trouble)

    @property
    def cpu_clock(self) -> str:
        """``"rseq"``: CPU time is exact to a fraction of a percent; ``"sampled"``: the thread's
        clock is read every 50 us at most, and shorter waits may be in the wrong function, which
        the quality line tells; ``"none"``: with ``clock="wall"``."""
        return str(self._tracer.facts()["cpu_clock"])

    @property
    def left_out(self) -> int:
        """How many calls began that were deeper than ``max_depth``."""
        return int(self._tracer.facts()["left_out"])

    def stats(
        self, *, sort: CallOrder | None = None, corrected: bool = False
    ) -> tuple[FunctionCalls, ...]:
        """One row for each function, of all threads together.

        :param sort: ``None``: by ``"self"``, or ``"self_cpu"`` with ``clock="cpu"``.
        :param corrected: take what the tracing itself cost, about, off the times of the functions
            themselves: :attr:`ns_per_call`, by the calls of each and the calls that it made. The
            times with all that a function called stay as they were, and so does what calls cost
            that were left out, those of functions of C, and a generator's further steps. With
            ``"setprofile"`` on 3.10 and 3.11, which slows every instruction down, that is less than
            it cost.
        """
        order = self._order(sort)
        (merged,) = self._tables(merged=True)
        return self._arranged(merged.functions, order, corrected)

    def threads(
        self, *, sort: CallOrder | None = None, corrected: bool = False
    ) -> tuple[ThreadCalls, ...]:
        """The same for each thread, in the order of their first calls."""
        order = self._order(sort)
        return tuple(
            replace(thread, functions=self._arranged(thread.functions, order, corrected))
            for thread in self._tables(merged=False)
        )

    def _order(self, sort: CallOrder | None) -> CallOrder:
        by_default: CallOrder = "self_cpu" if self._clock == "cpu" else "self"
        order = by_default if sort is None else sort
        if self._clock == "wall" and order in ("self_cpu", "total_cpu"):
            raise InvalidArgumentError(
                f"the calls have no CPU time to sort them by: {order!r}",
                "trace them again without clock='wall'",
            )
        return order

    def _arranged(
        self, rows: tuple[FunctionCalls, ...], order: CallOrder, corrected: bool
    ) -> tuple[FunctionCalls, ...]:
        return _sorted(_corrected(rows, self._cost) if corrected else rows, order)

    def call_counts(self) -> dict[str, int]:
        """How often each Python function was called, by ``"line:name"`` of its ``def``; by
        ``"file:line:name"`` where several files have one like that."""
        rows = [row for row in self.stats() if row.line and row.calls]
        files: dict[tuple[int, str], set[str]] = {}
        for row in rows:
            files.setdefault((row.line, row.function), set()).add(row.file)
        counts: dict[str, int] = {}
        for row in rows:
            key = f"{row.line}:{row.function}"
            if len(files[row.line, row.function]) > 1:
                key = f"{row.file}:{key}"
            counts[key] = counts.get(key, 0) + row.calls
        return counts

    def print(
        self, *, mode: Mode | None = None, top: int | None = None, file: TextIO | None = None
    ) -> None:
        """Prints the table of functions, as :meth:`Profile.print` does; ``mode="cpu"``: of CPU
        time."""
        self.profile().print(mode=mode, top=top, file=file)

    def profile(self) -> Profile:
        """The same as a :class:`Profile`: to save as a flame graph, to report, to ask. Its samples
        are calls."""
        from pystrobe._profile import Profile

        return Profile(self._recorded(None))

    def _recorded(self, fd: int | None) -> _core.Recording:
        recording = self._tracer.recording(self.ns_per_call, fd)
        self._moved_because = self._tracer.moved_because()
        self._whole = self._tracer.whole()
        self._timeline_failure = self._tracer.timeline_failure()
        return recording

    def save(self, path: str | os.PathLike[str]) -> None:
        """As :meth:`Profile.save`: ``.html .strobe .pstats .callgrind .speedscope.json .pb.gz
        .collapsed .json``; of a timeline ``.trace.json .perfetto-trace`` too."""
        self.profile().save(path)

    def _tables(self, merged: bool) -> tuple[ThreadCalls, ...]:
        return tuple(
            ThreadCalls(tid, name, tuple(_function(*row) for row in rows))
            for tid, name, rows in self._tracer.rows(merged)
        )

    def _abandon(self) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.abandon()
        self._tracer.abandon()

    _MOVED = "the trace could not be written"  # where there is _moved_because
    _whole = True  # all of it is in what was made
    _timeline_failure = ""  # why that has no timeline to its end

    def _note_kept(self) -> None:
        """All of it is elsewhere, so that no report is to be made of what its file has."""
        if self._whole and self._file is not None:
            self._file.empty()

    def _finish(self) -> _core.Recording | None:
        """``None``: it does not run."""
        if _running is not self:
            return None
        self._end()
        descriptor = None if self._file is None else self._file.descriptor()
        recording = self._recorded(descriptor)
        if self._file is not None and descriptor is None and not self._timeline:
            self._moved_because = "the program closed its file"
        return recording


def _patterns(option: str, patterns: Iterable[str]) -> list[tuple[str, str]]:
    if isinstance(patterns, (str, bytes)) or not isinstance(patterns, Iterable):
        raise InvalidArgumentError(
            f"{option} is {patterns!r}", f"a list of patterns: {option}=[{patterns!r}]"
        )
    found = list(patterns)
    for pattern in found:
        is_text = isinstance(pattern, str) and is_utf8(pattern)
        if not is_text or not pattern or "\0" in pattern:
            raise InvalidArgumentError(
                f"a pattern of {option} is {pattern!r}",
                "a text that is not empty, in UTF-8 and without NUL",
            )
    # A path from here: files have theirs from the root.
    return [(text, os.path.abspath(text) if os.path.exists(text) else "") for text in found]


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if value not in (False, True):
            raise InvalidArgumentError(f"{name}={value!r}", "True or False")


def _depth(depth: int | None) -> int:
    if depth is None:
        return 0
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= _MOST_DEPTH:
        raise InvalidArgumentError(
            f"max_depth is {depth!r}",
            f"a whole number from 1 to {_MOST_DEPTH:,}, or None for all calls",
        )
    return depth


def _library() -> list[str]:
    import sysconfig  # which few programs have

    # Where it is indeed: a free-threaded 3.13's sysconfig may lack the "t" of lib/python3.13t.
    places = {os.path.dirname(os.__file__)}
    places.update(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return sorted({*places, *(os.path.realpath(place) for place in places)})


def _corrected(rows: tuple[FunctionCalls, ...], of_call: Cost) -> tuple[FunctionCalls, ...]:
    made: dict[tuple[str, str, int], int] = {}
    for row in rows:
        for caller in row.callers:
            key = (caller.function, caller.file, caller.line)
            made[key] = made.get(key, 0) + caller.calls

    def correct(row: FunctionCalls) -> FunctionCalls:
        calls_made = made.get((row.function, row.file, row.line), 0)
        by_calls = calls_made * (of_call.whole - of_call.in_callee)
        cost = (row.calls * of_call.in_callee + by_calls) / 1e9
        cpu = None if row.self_cpu is None else max(0.0, row.self_cpu - cost)
        return replace(row, self=max(0.0, row.self - cost), self_cpu=cpu)

    return tuple(map(correct, rows))


class _LentFile:
    """A descriptor of our own among those of the program, which may close all there are and then
    have the same number for something else."""

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        self._is = self._identity()

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def empty(self) -> None:
        """Whoever lent it shares its position, which tells that the program has said why."""
        descriptor = self.descriptor()
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 1, os.SEEK_SET)

    def descriptor(self) -> int | None:
        """``None``: it is not ours any more."""
        try:
            return self._fd if self._identity() == self._is else None
        except OSError:
            return None


_Sums = tuple[int, int, int, int, int, "int | None", "int | None", int, int]


def _times(facts: tuple[str, str, int] | None, sums: _Sums) -> CallTimes:
    function, file, line = facts or ("", "", 0)
    calls, recursive, running, own, total, *cpu, finished, lifetime = sums
    own_cpu, total_cpu = (None if ns is None else ns / 1e9 for ns in cpu)
    return CallTimes(
        *(function, file, line, calls, recursive, running, own / 1e9, total / 1e9),
        *(own_cpu, total_cpu, finished, lifetime / 1e9),
    )


def _function(
    facts: tuple[str, str, int],
    sums: _Sums,
    callers: list[tuple[tuple[str, str, int] | None, _Sums]],
) -> FunctionCalls:
    return FunctionCalls(
        **vars(_times(facts, sums)), callers=tuple(_times(*caller) for caller in callers)
    )


def _sorted(rows: tuple[FunctionCalls, ...], by: CallOrder) -> tuple[FunctionCalls, ...]:
    orders = ("self", "total", "self_cpu", "total_cpu", "calls")
    if by not in orders:
        raise InvalidArgumentError(f"no such order: {by!r}", f"one of {', '.join(orders)}")
    return tuple(sorted(rows, key=lambda row: -getattr(row, by)))


def _forget_in_child() -> None:
    global _running
    running, _running = _running, None
    if running is not None:
        running._abandon()


def _stop_at_exit() -> None:
    _core._program_ends()
    if _running is not None and (failure := _running._end_and_save()):
        print(f"pystrobe: {failure}", file=sys.stderr)


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(_stop_at_exit)
