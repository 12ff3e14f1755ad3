# SPDX-License-Identifier: Apache-2.0
"""A root directory with a Python and nothing else in it, and programs that run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from find import Interpreter

#: Of the standard library what no target needs.
LEFT_OUT = ("test", "site-packages", "dist-packages", "idlelib", "config-*", "__pycache__")
#: As those who run containers do it, but that the old root stays below.
OWN_MOUNTS = 'mount --bind "$0" "$0" && cd "$0" && pivot_root . old && exec "$@"'


@dataclass(frozen=True)
class Contained(Interpreter):
    """Its program is in the root by chroot, or in a mount namespace of which that is the root."""

    own_mounts: bool = False

    def command(self, *arguments: str) -> list[str]:
        if not self.own_mounts:
            return super().command(*arguments)
        assert self.root
        return ["unshare", "--mount", "sh", "-c", OWN_MOUNTS, self.root, self.path, *arguments]

    def environment(self) -> dict[str, str]:
        prefix = Path(self.path).parent.parent
        return {"PYTHONHOME": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib")}


def link_or_copy(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:  # another file system
        shutil.copy2(source, destination)


def put(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    link_or_copy(str(source.resolve()), str(destination))


def standard_library(interpreter: Interpreter) -> Path:
    ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    done = subprocess.run([interpreter.path, "-c", ask], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def fill(root: Path, interpreter: Interpreter, path: Path) -> None:
    """Puts the interpreter there, as `path` in the root, with its libraries."""
    home = root / path.relative_to("/").parent.parent
    put(Path(interpreter.path), root / path.relative_to("/"))
    libraries = subprocess.run(
        ["ldd", interpreter.path], capture_output=True, text=True, check=True
    ).stdout
    for library in map(Path, re.findall(r"/\S+", libraries)):
        of_python = library.name.startswith("libpython")
        put(library, home / "lib" / library.name if of_python else root / library.relative_to("/"))
    source = standard_library(interpreter)
    shutil.copytree(
        source,
        home / "lib" / source.name,
        ignore=shutil.ignore_patterns(*LEFT_OUT),
        copy_function=link_or_copy,
    )
    for directory in ("tmp", "old"):
        (root / directory).mkdir()
