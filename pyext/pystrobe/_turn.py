# SPDX-License-Identifier: Apache-2.0
"""One after the other, of what may call back into the program."""

from __future__ import annotations

import threading

from pystrobe._errors import Error


class Turn:
    """Threads wait for theirs; who has it and comes again, as from a signal handler, would wait for
    ever, and is refused::

        turn.check()
        with turn.lock:  # entered and left by C: no handler that raises can come in between
            ...

    A handler that runs between the two has let the lock go when it returns.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def is_mine(self) -> bool:
        """The calling thread has it."""
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]  # as Condition does

    def is_taken(self) -> bool:
        """Somebody has it, the calling thread or another one."""
        if self.is_mine() or not self.lock.acquire(blocking=False):
            return True
        self.lock.release()
        return False

    def check(self) -> None:
        """:raises Error: the calling thread has it."""
        if self.is_mine():
            raise Error(
                "a profiler is being started, stopped or stepped below this call",
                "do that when it has returned: not in a schedule, nor in a signal handler "
                "that ran meanwhile",
            )
