# SPDX-License-Identifier: Apache-2.0
"""Every thread's stack, now."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from pystrobe import _core
from pystrobe._errors import InvalidArgumentError


@dataclass(frozen=True)
class Local:
    name: str
    value: str  #: a short repr, cut
    is_argument: bool


@dataclass(frozen=True)
class Frame:
    function: str  #: qualified name where the interpreter has one (3.11+)
    file: str
    line: int  #: 0 where the interpreter has none
    native: bool = False  #: machine code; its file is its source file or its ELF file
    locals: tuple[Local, ...] = ()  #: empty unless asked for

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


@dataclass(frozen=True)
class ThreadStack:
    tid: int  #: the kernel's thread id
    name: str
    interpreter: int  #: 0 is the main one
    holds_gil: bool  #: free-threaded builds: attached
    state: str  #: as /proc has it: R running, S sleeping, ...
    proved: bool  #: the copy is proved consistent
    complete: bool  #: it reached the thread's first frame
    native_whole: bool  #: where asked for, native frames reach the thread's first function
    frames: tuple[Frame, ...]  #: innermost first


@dataclass(frozen=True)
class Dump:
    pid: int
    executable: str
    command: tuple[str, ...]
    threads: tuple[ThreadStack, ...]  #: the main thread first
    held_ns: int  #: how long the process was held still, in all


def dump(pid: int, *, locals: bool = False, pause: str = "auto", native: bool = False) -> Dump:
    """Looks once at every thread of process ``pid``; the process is not changed.

    :param locals: also read local variables, in the same pause as the stack, which is longer for
        it. Their values may be secret.
    :param pause: how a running thread is held still: auto, preempt, ptrace or none.
    :param native: show C and C++ functions too, and threads without Python. Each thread is stopped
        by ptrace for it, whatever ``pause`` is.
    :raises Error: a subclass says why the process could not be read.
    """
    pid = operator.index(pid)
    if abs(pid) >= 1 << 31:
        raise InvalidArgumentError(f"pid is {pid}", "the number of a process")
    raw = _core.dump(pid, locals, pause, native)
    return Dump(
        pid=raw["pid"],
        executable=raw["executable"],
        command=tuple(raw["command"]),
        threads=tuple(_thread(**thread) for thread in raw["threads"]),
        held_ns=raw["held_ns"],
    )


def _thread(*, frames: list[dict[str, Any]], **fields: Any) -> ThreadStack:
    return ThreadStack(**fields, frames=tuple(_frame(**frame) for frame in frames))


def _frame(*, locals: list[dict[str, Any]], **fields: Any) -> Frame:
    return Frame(**fields, locals=tuple(Local(**local) for local in locals))
