# SPDX-License-Identifier: Apache-2.0
"""What is being measured, told on stderr: a line for each program, and on a terminal which run of
how many is under way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from pystrobe.bench._turns import Answer

_CLEAR = "\r\033[K"


class Progress:
    """:param runs: how many there are at most: a tool that fails is not run again."""

    def __init__(self, runs: int, quiet: bool) -> None:
        self._runs = runs
        self._quiet = quiet
        self._on_terminal = not quiet and sys.stderr.isatty()
        self._done = 0
        self._begin = time.monotonic()

    def begin(self, what: str, profilers: int) -> None:
        if not self._quiet:
            print(f"{what}: {profilers} profilers ...", file=sys.stderr)

    def told(self, tool: str, run: Callable[[], Answer]) -> Callable[[], Answer]:
        """The same run, of which is told that it begins."""

        def begin() -> Answer:
            self._tell(tool)
            try:
                return run()
            finally:
                self._done += 1

        return begin

    def end(self) -> None:
        """What is printed next begins where a line does."""
        if self._on_terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def _tell(self, tool: str) -> None:
        if not self._on_terminal:
            return
        text = f"  run {self._done + 1} of {self._runs}: {tool}{self._time_left()}"
        print(f"{_CLEAR}{text}", end="", file=sys.stderr, flush=True)

    def _time_left(self) -> str:
        if self._done == 0:
            return ""
        of_one = (time.monotonic() - self._begin) / self._done
        minutes = of_one * (self._runs - self._done) / 60
        return f", {minutes:.0f} min left" if minutes >= 1 else ", less than a minute left"
