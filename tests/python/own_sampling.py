# SPDX-License-Identifier: Apache-2.0
"""Targets that sample themselves by signals, by tests/cpp/signal/preloaded_sampler.cpp."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from collapsed import Stack
from find import Interpreter
from pystrobe_command import REPOSITORY, Pystrobe, Recorded
from running import Running, running

TIMEOUT_S = 60


@dataclass(frozen=True)
class Loaded(Interpreter):
    """One of another root, run by that root's loader instead of in it: there is no /proc in it."""

    prefix: str = ""

    def command(self, *arguments: str) -> list[str]:
        library = f"{self.prefix}/usr/lib/x86_64-linux-gnu"
        loader = f"{self.prefix}/lib64/ld-linux-x86-64.so.2"
        return [loader, "--library-path", library, self.prefix + self.path, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONHOME": f"{self.prefix}/usr"}


def outside_its_root(interpreter: Interpreter) -> Interpreter:
    if not interpreter.root:
        return interpreter
    fields = {**vars(interpreter), "root": None}
    return Loaded(**fields, prefix=interpreter.root)


def library() -> Path:
    if named := os.environ.get("PYSTROBE_PRELOADED_SAMPLER"):
        return Path(named)
    return _newest("tests/cpp/libpreloaded_sampler.so")


def extension_module() -> Path:
    """As it is built: in the one that is installed no names are left."""
    return _newest("pyext/module/_core*.so")


def _newest(name: str) -> Path:
    built = list(REPOSITORY.glob(f"build/*/{name}"))
    if not built:
        pytest.fail(f"no {name}: build the C++ tests")
    return max(built, key=lambda path: path.stat().st_mtime)


@dataclass
class OwnSampling:
    """A target that samples itself on request."""

    target: Running
    directory: Path
    pystrobe: Pystrobe

    def record(self, seconds: float, rate: float, native: bool = False) -> Recorded:
        done, failed = self.directory / "done.strobe", self.directory / "failed"
        done.unlink(missing_ok=True)
        made = self.directory / "go.part"
        made.write_text(f"{rate} {seconds} {int(native)}")
        made.rename(self.directory / "go")
        end = time.monotonic() + TIMEOUT_S
        while not done.exists():
            assert not failed.exists(), failed.read_text()
            assert self.target.alive()
            assert time.monotonic() < end, "no recording came"
            time.sleep(0.01)
        return Recorded(self.pystrobe, done, self.pystrobe.run("--version"))


def of_the_program(stacks: list[Stack]) -> list[Stack]:
    """Without those of the library's own threads."""
    return [stack for stack in stacks if not stack.thread.startswith("own sampler")]


@contextmanager
def sampling_itself(
    pystrobe: Pystrobe,
    interpreter: Interpreter,
    target: str,
    *arguments: str,
    environment: dict[str, str] | None = None,
) -> Iterator[OwnSampling]:
    variables = {
        "LD_PRELOAD": str(library()),
        "PYSTROBE_OWN_RECORDING": str(pystrobe.directory),
        **getattr(interpreter, "environment", {}),
        **(environment or {}),
    }
    with running(interpreter, target, *arguments, environment=variables) as process:
        yield OwnSampling(process, pystrobe.directory, pystrobe)
