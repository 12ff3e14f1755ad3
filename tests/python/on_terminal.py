# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from contextlib import suppress


class OnTerminal:
    """A command on a terminal of its own, which it also gets its Ctrl-C from."""

    def __init__(self, *command: str, columns: int = 100) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.environ.pop("NO_COLOR", None)
            os.execvp(command[0], command)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.text = ""

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read_until(self, pattern: str, timeout: float = 30) -> str:
        """Reads on until the text since the start matches."""
        deadline = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self.master], [], [], left)[0]
            assert ready, f"no {pattern!r} in {self.text!r}"
            piece = self._read()
            assert piece, f"ended without {pattern!r}: {self.text!r}"
            self.text += piece
        return self.text

    def finish(self) -> int:
        while piece := self._read():
            self.text += piece
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)

    def hang_up(self) -> int:
        """The terminal is gone; the command must end of it."""
        os.close(self.master)
        deadline = time.monotonic() + 10
        while not (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        return os.waitstatus_to_exitcode(ended[1])

    def _read(self) -> str:
        """What there is; empty once the other side is closed. Linux looks whether there is anything
        and then whether it is closed, and what is written and closed in between is there only when
        asked again (n_tty_read in drivers/tty/n_tty.c)."""
        for _ in range(2):
            with suppress(OSError):
                return os.read(self.master, 65536).decode(errors="replace")
        return ""
