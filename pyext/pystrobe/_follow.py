# SPDX-License-Identifier: Apache-2.0
"""Sampling goes on in a child made by fork: anew, with a recording of its own."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, NoReturn

# Here, since a child may not import: another thread's import, which it lacks, may hold the lock.
from pystrobe import _core, _output, _profiler
from pystrobe._errors import Error
from pystrobe._profile import Profile

if TYPE_CHECKING:
    from pystrobe._profiler import Profiler

#: The file for a child, by what tells it from others.
NameOfChild = Callable[[str], str]

_exit_of_ours: Callable[[int], NoReturn] | None = None


def beside(path: str) -> NameOfChild:
    """``work.speedscope.json`` gives ``work.1234.speedscope.json``."""
    stem, suffix = _core.split_suffix(os.fsencode(path))
    return lambda tag: os.fsdecode(stem + b"." + os.fsencode(tag) + suffix)


class Child:
    """This process, which a sampled one has made by fork: where its recording goes.

    It is written as ``.strobe`` while it is made, under the name of what is asked for, which takes
    its place in the end. So it is there as well when the process is killed.
    """

    def __init__(self, name: NameOfChild) -> None:
        """Makes the file, at a name that nothing has."""
        pid = os.getpid()
        for number in count(1):
            self.output = name(f"{pid}" if number == 1 else f"{pid}-{number}")
            stem, _ = _core.split_suffix(os.fsencode(self.output))
            self.stream = os.fsdecode(stem + b".strobe")
            if os.path.lexists(self.output):
                continue
            try:
                self.fd = os.open(
                    self.stream, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
                )
            except FileExistsError:
                continue
            return

    def deliver(self, profile: Profile, moved_because: str | None) -> None:
        """Never raises: the child goes on, or ends, as it would without us."""
        try:
            if moved_because is not None:
                _tell(f"sampling ended early: {moved_because}; {_output.kept(profile)}")
            elif self.output != self.stream:
                profile.save(self.output)
                os.unlink(self.stream)
        except (Error, OSError) as error:
            _tell(f"{error}; what was recorded is in {self.stream}")


def go_on(profiler: Profiler, name: NameOfChild) -> None:
    """In the child, once it has let go of what is the parent's."""
    try:
        child = Child(name)
    except OSError as error:
        _tell(f"not sampled: {error}")
        return
    try:
        profiler._start_in(child)
        _end_before_exit()
    except Error as error:
        os.unlink(child.stream)
        _tell(f"not sampled: {error}")
    finally:
        os.close(child.fd)


def _end_before_exit() -> None:
    """The children of multiprocessing leave by os._exit, which calls nobody."""
    global _exit_of_ours
    leave = os._exit
    if leave is _exit_of_ours:
        return  # since a fork before

    @functools.wraps(leave)
    def _exit(status: int) -> NoReturn:
        try:
            _end()
        finally:
            leave(status)

    os._exit = _exit_of_ours = _exit


def _end() -> None:
    running = _profiler._running
    # Whose turn it is is about to end it, or waits for the end of this call, as below a handler.
    if running is None or _profiler._turn.is_taken():
        return
    try:
        running._end()
    # Of `on_trace_ready`, too.
    except Exception as error:
        _tell(str(error) or repr(error))


def _tell(what: str) -> None:
    print(f"pystrobe: child process {os.getpid()}: {what}", file=sys.stderr)
