# SPDX-License-Identifier: Apache-2.0
"""Programs that close all descriptors while they are sampled or traced from inside, as daemons do,
and open files of their own under the same numbers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pystrobe_command import Pystrobe

pytest.importorskip("pystrobe", reason="the package is not installed: make build")

CLOSING = """\
import os, sys, time, zlib
def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        zlib.compress(bytes(10000))
def succeeds(child):
    return os.waitpid(child, 0)[1] == 0
burn(0.3)
if os.environ["FORK"] and (child := os.fork()):
    sys.exit(not succeeds(child))
burn(0.3)
os.closerange(3, 1000)
files = [os.open(os.environ["OWN"] + str(i), os.O_CREAT | os.O_WRONLY) for i in range(30)]
for seconds in (0, 2.5):  # while it is sampled, and when it no longer is
    burn(seconds)
    if not (child := os.fork()):
        for file in files:
            os.fstat(file)  # else it does not exit with 0
        os._exit(0)
    assert succeeds(child)
for file in files:
    os.write(file, b"its own")
    os.close(file)
"""


@pytest.mark.parametrize(
    "options", [(), ("--mode", "wall"), ("--native",), ("--follow-fork",)], ids=" ".join
)
def test_files_of_the_program_are_left_alone(
    pystrobe: Pystrobe, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Neither written to nor closed, by the program or a child of it."""
    program, own = tmp_path / "closing.py", tmp_path / "own"
    program.write_text(CLOSING)
    environment = {"OWN": str(own), "FORK": "yes" if "--follow-fork" in options else ""}
    done = pystrobe.run(
        *("run", "--in-process", "--python", sys.executable, *options),
        *("-o", str(tmp_path / "out.strobe"), str(program)),
        env={**os.environ, **environment},
    )
    assert done.code == 0, done.err
    assert {own.with_name(f"own{i}").read_text() for i in range(30)} == {"its own"}
    assert "the program has closed its file" in " ".join(done.err.split())


def test_a_file_of_the_program_is_not_taken_for_the_recording(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    """Daemons close all descriptors, whatever they are."""
    program, own = tmp_path / "daemon.py", tmp_path / "own"
    program.write_text(
        f"import os\nos.closerange(3, 1000)\nfiles = [open({str(own)!r}, 'w') for _ in range(9)]\n"
    )
    done = pystrobe.run("trace", "--python", sys.executable, str(program))
    assert done.code == 0
    assert "the program closed its file; nothing recorded is lost" in " ".join(done.err.split())
    assert own.read_bytes() == b""
