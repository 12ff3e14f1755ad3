# SPDX-License-Identifier: Apache-2.0
"""Names of C functions whose debug information is in a file of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from own_program import answer
from running import TARGETS

pytest.importorskip("pystrobe", reason="the package is not installed: make build")
pytestmark = pytest.mark.skipif(not shutil.which("objcopy"), reason="needs objcopy, of binutils")


@pytest.fixture
def stripped(tmp_path: Path) -> Path:
    """It names its debug information, which is in `.debug` beside it."""
    whole, library = tmp_path / "whole.so", tmp_path / "inlined.so"
    debug = tmp_path / ".debug" / "inlined.debug"
    debug.parent.mkdir()
    for command in (
        # No build-id, by which it would be looked for elsewhere.
        f"cc -g -O2 -shared -fPIC -Wl,--build-id=none -o {whole} {TARGETS}/c_inlined.c",
        f"objcopy --only-keep-debug {whole} {debug}",
        f"objcopy --strip-all --add-gnu-debuglink={debug} {whole} {library}",
    ):
        subprocess.run(command.split(), check=True)
    whole.unlink()
    return library


def path_of_the_time(library: Path) -> list[str]:
    """The names below Python's that have most of the time in the library."""
    stack = answer(
        f"""
import ctypes, json, pystrobe
exported = ctypes.CDLL({str(library)!r}).exported
exported.argtypes = [ctypes.c_uint64, ctypes.c_int]
with pystrobe.Profiler(rate=1000, native=True) as profiler:
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        exported(1, 5)
# At a function's first and last instructions there may be no word of those that called it.
stacks = sorted(profiler.profile.stacks(), key=lambda stack: stack.self.cpu_ns)
print(json.dumps([frame.function for frame in stacks[-1].frames if frame.native]))
"""
    )
    return list(stack)


def test_static_and_inlined_functions_are_named(stripped: Path) -> None:
    assert path_of_the_time(stripped)[-3:] == ["exported", "static_work", "inlined_rounds"]


def test_without_that_file_they_are_not(stripped: Path) -> None:
    shutil.rmtree(stripped.parent / ".debug")
    path = path_of_the_time(stripped)
    assert "exported" in path
    assert not {"static_work", "inlined_rounds"} & set(path)
