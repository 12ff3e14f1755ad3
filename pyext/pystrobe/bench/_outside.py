# SPDX-License-Identifier: Apache-2.0
"""Samplers that attach to the program from outside, a thousand times a second."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pystrobe.bench._traced import Nothing

_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)

#: {pid} is the program's, {file} where to write.
_COMMANDS = {
    "pystrobe, attach": [
        *(sys.executable, "-m", "pystrobe", "attach", "-q", "-r", "1000"),
        *("-o", "{file}.strobe", "--force", "{pid}"),
    ],
    "py-spy": ["py-spy", "record", "-r", "1000", "-f", "raw", "-o", "{file}", "-p", "{pid}"],
    "Austin": ["austin", "-i", "1000us", "-o", "{file}", "-p", "{pid}"],
    "profiling.sampling": [
        *(sys.executable, "-m", "profiling.sampling", "attach", "-r", "1000", "-d", "3600"),
        *("--collapsed", "-o", "{file}", "{pid}"),
    ],
}


class Sampler(Nothing):
    """One that is started for each turn, on other CPUs than the program's where there are any."""

    BEGINS_S = 0.5  #: it is given so long to attach
    ENDS_S = 30.0  #: and so long to write what it has

    def __init__(self, name: str) -> None:
        self.words = _COMMANDS[name]
        self.folder = tempfile.TemporaryDirectory(prefix="pystrobe-bench-")
        self.said = Path(self.folder.name, "said")
        # A child may not read its parent where the kernel is asked to be strict (Yama).
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)

    def start(self) -> None:
        file = Path(self.folder.name, "stacks")
        words = [word.format(pid=os.getpid(), file=file) for word in self.words]
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, preexec_fn=_elsewhere
            )
        time.sleep(self.BEGINS_S)
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended at once: {self._last_line()}")

    def stop(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended too early: {self._last_line()}")
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(self.ENDS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def _last_line(self) -> str:
        lines = self.said.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _elsewhere() -> None:
    here = os.sched_getaffinity(0)
    others = set(range(os.cpu_count() or 1)) - here
    try:
        os.sched_setaffinity(0, others or here)
    except OSError:  # none of the others is for us
        return
