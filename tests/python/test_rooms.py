# SPDX-License-Identifier: Apache-2.0
"""The rooms of docs/architecture.md and the arrows between them, read off the `#include` lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.beside_others

ROOT = Path(__file__).resolve().parents[2]
SOURCE_SUFFIXES = {".c", ".cc", ".cpp", ".h", ".hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

BASE = "profiler/base"
MODEL = "profiler/model"
ANALYZE = "profiler/analyze"
STORE = "profiler/store"
WRITE = "profiler/write"
PRINT = "profiler/print"
TRACE = "profiler/trace"
# The layouts and the walker read memory through an interface: they know no process.
PYABI = "sampler/pyabi"
NATIVE = "sampler/native"
REMOTE = "sampler/remote"
PROFILER = {BASE, MODEL, ANALYZE, STORE, WRITE, PRINT, TRACE}
SIGNAL = "sampler/signal"
HOOKS = "pyext/hooks"
LAUNCH = "pyext/launch"
GPU = "gpu"
SAMPLER = {PYABI, NATIVE, REMOTE, SIGNAL}

# Room: the rooms it may include, besides itself. The table of docs/architecture.md.
ARROWS: dict[str, set[str]] = {
    BASE: set(),
    MODEL: {BASE},
    ANALYZE: {BASE, MODEL},
    STORE: {BASE, MODEL},
    WRITE: {BASE, MODEL, ANALYZE},
    PRINT: {BASE, MODEL, ANALYZE, WRITE},
    TRACE: {BASE, MODEL},
    PYABI: {BASE},
    NATIVE: {BASE, PYABI},
    REMOTE: {BASE, MODEL, NATIVE, PYABI},
    SIGNAL: {BASE, MODEL, NATIVE, PYABI, REMOTE},
    "cli": {*PROFILER, *SAMPLER},
    GPU: {BASE},
    HOOKS: {BASE, TRACE},
    LAUNCH: {BASE, MODEL, PYABI, REMOTE, GPU},
    "pyext": {*PROFILER, *SAMPLER, GPU, HOOKS, LAUNCH},
}

# Header: the folders whose files may include it.
FENCED = {
    re.compile(r"(^|/)Python\.h$"): ("pyext/module/", "pyext/hooks/", "pyext/launch/"),
    re.compile(r"^pybind11/"): ("pyext/module/",),
    re.compile(r"^(cuda|cupti|nvtx3/)"): ("gpu/",),
}
# Programs that are compiled apart from the product: they print facts about other programs' headers.
GENERATORS = {"sampler/pyabi/generate"}


def room_of(path: str) -> str | None:
    """The room that a file, given relative to the root, belongs to."""
    inside = [room for room in ARROWS if path.startswith(room + "/")]
    return max(inside, key=len) if inside else None


def includes(path: Path) -> list[tuple[str, bool]]:
    """(header, is ours to name by its path) for each include line."""
    text = path.read_text(encoding="utf-8")
    return [(name, quote == '"') for quote, name in INCLUDE.findall(text)]


def source_files() -> list[Path]:
    tops = {room.split("/")[0] for room in ARROWS}
    return [
        path
        for top in sorted(tops)
        for path in sorted((ROOT / top).rglob("*"))
        if path.suffix in SOURCE_SUFFIXES
        and not any(str(path.relative_to(ROOT)).startswith(g + "/") for g in GENERATORS)
    ]


def violations_of(relative: str, found: list[tuple[str, bool]]) -> list[str]:
    """What is wrong with the includes of one file; empty when nothing is."""
    room = room_of(relative)
    if room is None:
        return [f"{relative}: is in no room; add it to ARROWS and to docs/architecture.md"]
    wrong = []
    for header, quoted in found:
        for fence, allowed in FENCED.items():
            if fence.search(header) and not relative.startswith(allowed):
                wrong.append(f"{relative}: <{header}> has no place outside {' and '.join(allowed)}")
        target = room_of(header)
        if target and target != room and target not in ARROWS[room]:
            wrong.append(f"{relative}: {room} may not know {target} ({header})")
        if quoted and target is None:
            wrong.append(f'{relative}: "{header}" is not the path of a header of ours')
    return wrong


def arrows_of_the_table() -> dict[str, set[str]]:
    """The rows of docs/architecture.md but the last one: who knows everything is no room."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`|]+)` \|[^|]*\| ([^|]+) \|$", text, re.MULTILINE)
    by_word = {room.rsplit("/", 1)[-1]: {room} for room in ARROWS}
    by_word |= {"nothing": set(), "profiler": PROFILER, "sampler": SAMPLER}
    return {
        room: set().union(*(by_word[word] for word in known.split(", "))) for room, known in rows
    }


def test_the_arrows_are_those_of_the_table() -> None:
    assert arrows_of_the_table() == ARROWS


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_is_a_folder(room: str) -> None:
    assert (ROOT / room).is_dir()


def test_every_include_follows_an_arrow() -> None:
    files = source_files()
    assert len(files) > 20, f"only {len(files)} source files under {ROOT}: the search is broken"
    wrong = [
        line
        for path in files
        for line in violations_of(str(path.relative_to(ROOT)), includes(path))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("profiler/base/x.h", '#include "profiler/model/ids.h"'),
        ("profiler/model/x.h", '#include "sampler/remote/target.h"'),
        ("profiler/store/x.cpp", '#include "profiler/analyze/profile.h"'),
        ("sampler/remote/x.cpp", '#include "profiler/store/strobe.h"'),
        ("sampler/pyabi/x.cpp", '#include "sampler/remote/target.h"'),
        ("sampler/pyabi/x.cpp", '#include "profiler/model/ids.h"'),
        ("cli/x.cpp", '#include "pyext/module/core.h"'),
        ("cli/x.cpp", "#include <pybind11/pybind11.h>"),
        ("sampler/remote/x.cpp", "#include <Python.h>"),
        ("sampler/remote/x.cpp", "# include <python3.11/Python.h>"),
        ("pyext/x.cpp", "#include <Python.h>"),
        ("cli/x.cpp", '#include "terminal.h"'),
        ("gpu/x.cpp", '#include "sampler/remote/target.h"'),
        ("pyext/module/x.cpp", "#include <cuda.h>"),
        ("profiler/new/x.cpp", '#include "profiler/base/error.h"'),
    ],
)
def test_the_check_sees_a_wrong_include(path: str, line: str) -> None:
    found = [(name, quote == '"') for quote, name in INCLUDE.findall(line)]
    assert found
    assert violations_of(path, found)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("profiler/model/x.h", '#include "profiler/base/error.h"'),
        ("sampler/remote/x.cpp", '#include "sampler/pyabi/layout.h"'),
        ("cli/x.cpp", '#include "sampler/remote/target.h"'),
        ("pyext/module/x.cpp", "#include <pybind11/stl.h>"),
        ("profiler/write/x.cpp", "#include <vector>"),
    ],
)
def test_the_check_lets_a_right_include_pass(path: str, line: str) -> None:
    found = [(name, quote == '"') for quote, name in INCLUDE.findall(line)]
    assert found
    assert not violations_of(path, found)
