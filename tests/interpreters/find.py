#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every CPython on this machine that the tests can run: the system's, pyenv's, and those that
fetch.sh put in place. As a program it prints one line for each:

    VERSION PATH direct|chroot:ROOT gil|ft

or, with --headers [NAME...], of all or of those NAMES, what CMake builds the package for them from
(PYSTROBE_OTHER_PYTHONS). PATH is as seen inside ROOT. Interpreters that do not start are left out;
PyPy and the like too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 8)
OLDEST_OWN = (3, 9)  #: of those that can import the package
_PROBE = """
import sys, sysconfig
assert sys.implementation.name == "cpython"
print("%d.%d.%d" % sys.version_info[:3], int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))))
print(sysconfig.get_path("include"))
print(sysconfig.get_config_var("EXT_SUFFIX"))
"""


@dataclass(frozen=True)
class Interpreter:
    version: str  #: "3.13.5"
    path: str  #: of the executable, inside `root` if there is one
    root: str | None  #: a root directory to chroot into, or None
    free_threaded: bool
    include: str = ""  #: the directory of Python.h as seen from here; it may not be there
    suffix: str = ""  #: of extension modules

    @property
    def minor(self) -> tuple[int, int]:
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def name(self) -> str:
        """Minor version and kind: "3.13", "3.13t"."""
        return "{}.{}".format(*self.minor) + ("t" if self.free_threaded else "")

    def command(self, *arguments: str) -> list[str]:
        """The argument vector that runs it. Needs root when there is a `root`."""
        prefix = ["chroot", self.root] if self.root else []
        return [*prefix, self.path, *arguments]


def directory() -> Path:
    """Where fetch.sh puts interpreters."""
    default = Path.home() / ".cache" / "pystrobe" / "interpreters"
    return Path(os.environ.get("PYSTROBE_INTERPRETERS") or default)


def _probe(path: str, root: str | None = None) -> Interpreter | None:
    draft = Interpreter("0.0.0", path, root, False)
    try:
        answer = subprocess.run(
            draft.command("-I", "-c", _PROBE), capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0:
        return None
    version, free_threaded, include, suffix = answer.stdout.split()
    found = Interpreter(version, path, root, free_threaded == "1", f"{root or ''}{include}", suffix)
    return found if found.minor >= OLDEST else None


def _candidates() -> list[tuple[str, str | None]]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    direct = [*sorted(pyenv.glob("*/bin/python3")), *sorted(directory().glob("*t/bin/python3.*t"))]
    candidates: list[tuple[str, str | None]] = [("/usr/bin/python3", None)]
    candidates += [(str(path), None) for path in direct]
    if os.geteuid() == 0:
        root = directory() / "sid"
        for path in sorted(root.glob("usr/bin/python3.[0-9]*")):
            if path.name.replace("python3.", "").isdigit():
                candidates.append((f"/usr/bin/{path.name}", str(root)))
    return candidates


def find() -> list[Interpreter]:
    """All interpreters, by version; the system's comes before another of the same version."""
    found = [_probe(path, root) for path, root in _candidates()]
    known = [interpreter for interpreter in found if interpreter]
    return sorted(known, key=lambda one: (one.minor, one.free_threaded))


def headers(names: list[str]) -> str:
    """Of each name one, where its headers are there."""
    chosen = {
        one.name: f"{one.name}={one.include}={one.suffix}"
        for one in find()
        if (not names or one.name in names)
        and one.minor >= OLDEST_OWN
        and Path(one.include, "Python.h").exists()
    }
    return ";".join(chosen.values())


def main() -> None:
    if sys.argv[1:2] == ["--headers"]:
        print(headers(sys.argv[2:]))
        return
    for one in find():
        how = f"chroot:{one.root}" if one.root else "direct"
        print(one.version, one.path, how, "ft" if one.free_threaded else "gil")


if __name__ == "__main__":
    main()
