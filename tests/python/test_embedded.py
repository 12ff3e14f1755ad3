# SPDX-License-Identifier: Apache-2.0
"""Interpreters inside other programs, with ever less that names them: libpython loaded, linked in
without exported symbols, stripped, and at last without sections."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from find import Interpreter
from probing import found, ids
from running import TARGETS

pytestmark = pytest.mark.beside_others

NAMES = ("LIBDIR", "LIBPL", "LDVERSION", "MODLIBS", "LIBS", "SYSLIBS", "LINKFORSHARED")
ASK = (
    "import json, sys, sysconfig as s\n"
    f"facts = {{name: s.get_config_var(name) or '' for name in {NAMES!r}}}\n"
    "facts['include'] = s.get_paths()['include']\n"
    "facts['home'] = sys.base_prefix\n"
    "print(json.dumps(facts))"
)


@cache
def facts_of(interpreter: Interpreter) -> dict[str, str]:
    """How programs are linked with it; skips where that cannot be done here."""
    if interpreter.root:
        pytest.skip("compiled only where it needs no chroot")
    facts = dict(json.loads(subprocess.check_output(interpreter.command("-c", ASK))))
    if not Path(facts["include"], "Python.h").exists() or not shutil.which("gcc"):
        pytest.skip("no headers or no compiler")
    return facts


def link(facts: dict[str, str], executable: Path, *libraries: str) -> None:
    command = ["gcc", "-w", f"-I{facts['include']}", str(TARGETS / "embed.c")]
    subprocess.run([*command, "-o", str(executable), *libraries], check=True)


@cache
def linked_in(interpreter: Interpreter, directory: Path) -> Path:
    """A program with the interpreter inside. Nothing of it is exported."""
    facts, executable = facts_of(interpreter), directory / interpreter.name
    archive = Path(facts["LIBPL"]) / f"libpython{facts['LDVERSION']}.a"
    if not archive.exists():
        pytest.skip("no static libpython")
    libraries = f"{facts['MODLIBS']} {facts['LIBS']} {facts['SYSLIBS']} -lm".split()
    # Debian's archive is not made for position-independent executables, gcc's default.
    link(facts, executable, "-no-pie", str(archive), *libraries)
    return executable


def remove_section_headers(executable: Path) -> None:
    data = bytearray(executable.read_bytes())
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HHH", data, 58, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    executable.write_bytes(data)


@contextmanager
def started(facts: dict[str, str], executable: Path, *arguments: str) -> Iterator[int]:
    environment = {**os.environ, "PYTHONHOME": facts["home"], "LD_LIBRARY_PATH": facts["LIBDIR"]}
    command = [str(executable), *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def test_by_a_shared_library(interpreter: Interpreter, tmp_path: Path) -> None:
    facts, program = facts_of(interpreter), tmp_path / "server"
    if not list(Path(facts["LIBDIR"]).glob(f"libpython{facts['LDVERSION']}.so")):
        pytest.skip("no shared libpython")
    # Not position-independent: the program gets copies of the types that it refers to.
    link(facts, program, "-no-pie", f"-L{facts['LIBDIR']}", f"-lpython{facts['LDVERSION']}")
    with started(facts, program) as pid:
        seen = found(pid)
    assert seen["executable"] == str(program)
    assert "libpython" in seen["python_file"]
    assert ids(seen) == [pid]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("work", ["busy", "idle"])
@pytest.mark.parametrize("left", ["symbols", "sections", "segments"])
def test_linked_in(
    interpreter: Interpreter,
    tmp_path: Path,
    programs: Path,
    left: str,
    work: str,
) -> None:
    facts, program = facts_of(interpreter), tmp_path / "server"
    shutil.copy(linked_in(interpreter, programs), program)
    if left != "symbols":
        subprocess.run(["strip", "--strip-all", str(program)], check=True)
    if left == "segments":
        remove_section_headers(program)
    with started(facts, program, work) as pid:
        seen = found(pid)
    expected = {"symbols": "symbol table", "sections": "section", "segments": "memory scan"}[left]
    if left == "sections" and interpreter.minor < (3, 10):
        expected = "memory scan"  # _PyRuntime has a section of its own since 3.10
    assert seen["found_by"] == expected
    assert seen["version"] == interpreter.version
    assert ids(seen) == [pid]
