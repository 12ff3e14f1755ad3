# SPDX-License-Identifier: Apache-2.0
"""Interpreters that have the package: this one, in which it is installed, and those for which the
build has made the extension module (`other_pythons`, under $PYSTROBE_BUILD)."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import find
from pystrobe_command import REPOSITORY


@dataclass(frozen=True)
class Own:
    name: str  #: "3.13", "3.13t"
    version: tuple[int, ...]  #: (3, 13, 5)
    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()  #: of the environment
    root: str = ""  #: the root directory that it runs in, if not ours

    def environment(self) -> dict[str, str]:
        return {**os.environ, **dict(self.variables)}

    def directory(self, ours: Path) -> Path:
        """One that it can write to: `ours`, unless it does not see that."""
        if not self.root:
            return ours
        place = Path(mkdtemp(prefix="written-", dir=f"{self.root}/tmp"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        return place

    def seen(self, path: Path) -> str:
        """What it calls a path of ours."""
        return str(path).removeprefix(self.root)


THIS = Own("{}.{}".format(*sys.version_info), tuple(sys.version_info[:3]), (sys.executable,))


@cache
def own_interpreters() -> list[Own]:
    """This one first."""
    build = os.environ.get("PYSTROBE_BUILD")
    others = sorted(Path(build, "python").glob("*/_core*.so")) if build else []
    cores = {core.parent.name: core for core in others}
    found = {one.name: one for one in find.find() if one.name != THIS.name}
    return [THIS, *(_package(found[name], core) for name, core in cores.items() if name in found)]


def _package(interpreter: find.Interpreter, core: Path) -> Own:
    """Puts the package together, in a chroot with the libraries that it needs."""
    root = Path(interpreter.root or "/")
    place = Path(mkdtemp(prefix=f"pystrobe-{interpreter.name}-", dir=root / "tmp"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    shutil.copytree(REPOSITORY / "pyext" / "pystrobe", place / "pystrobe")
    shutil.copy(core, place / "pystrobe")
    if (packages := core.parent / "packages").exists():  # tests/interpreters/packages.sh
        shutil.copytree(packages, place, dirs_exist_ok=True)
    variables = {"PYTHONPATH": f"/{place.relative_to(root)}", "PYTHONDONTWRITEBYTECODE": "1"}
    if interpreter.root:
        libraries = place / "lib"
        libraries.mkdir()
        for name, path in _libraries(core):
            if not any((root / "usr/lib/x86_64-linux-gnu").glob(name)):
                shutil.copy(path, libraries / name)
        variables["LD_LIBRARY_PATH"] = f"/{libraries.relative_to(root)}"
    return Own(
        interpreter.name,
        tuple(map(int, interpreter.version.split("."))),
        _chroot(interpreter) if interpreter.root else tuple(interpreter.command()),
        tuple(variables.items()),
        interpreter.root or "",
    )


def _chroot(interpreter: find.Interpreter) -> tuple[str, ...]:
    """With what a container has, too."""
    script = 'mount -t proc proc "$0/proc" && mount -t sysfs sys "$0/sys" && exec chroot "$0" "$@"'
    return ("unshare", "--mount", "sh", "-c", script, interpreter.root or "", interpreter.path)


def _libraries(core: Path) -> list[tuple[str, str]]:
    said = subprocess.run(["ldd", str(core)], capture_output=True, text=True, check=True).stdout
    pairs = [line.split() for line in said.splitlines()]
    return [(words[0], words[2]) for words in pairs if words[1:2] == ["=>"] and words[2] != "not"]
