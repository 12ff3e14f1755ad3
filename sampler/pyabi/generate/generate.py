#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes layout_tables.cpp: where CPython 3.8 to 3.12 keep what the sampler reads.

Compiles offsets.c against the internal headers of one interpreter of each release and puts what it
prints side by side.

    generate.py PYTHON...            write layout_tables.cpp; one interpreter of every release
    generate.py --check PYTHON...    compare instead: every interpreter given must agree with its
                                     column of the committed table

PYTHON is the path of an interpreter with its headers installed, or the folder of its headers
(.../include/python3.11). Later releases describe themselves (_Py_DebugOffsets) and are refused.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parent / "layout_tables.cpp"
FIRST, LAST = (3, 8), (3, 12)

HEAD = """\
// SPDX-License-Identifier: Apache-2.0
//
// Made by generate/generate.py: do not edit. From the headers of CPython
// {versions}.
#include <array>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/layout_tables.h"

namespace pystrobe::pyabi {{
namespace {{

#define FIELD(path) #path, [](Layout& layout) -> uint32_t& {{ return layout.path; }}
constexpr uint32_t kNone = kAbsent;

// clang-format off
constexpr auto kRows = std::to_array<LayoutRow>({{
"""

TAIL = """\
}});
// clang-format on
#undef FIELD

}}  // namespace

std::span<const LayoutRow> LayoutRows() {{ return kRows; }}

}}  // namespace pystrobe::pyabi
"""


def include_folder(python: str) -> pathlib.Path:
    path = pathlib.Path(python)
    if path.is_dir():
        return path
    code = "import sysconfig; print(sysconfig.get_paths()['include'])"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return pathlib.Path(done.stdout.strip())


def measure(python: str) -> tuple[tuple[int, int, int], dict[str, int]]:
    """Returns the version and the offsets the headers of `python` (see above) give."""
    include = include_folder(python)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "offsets"
        paths = [f"-I{include}", f"-I{include}/internal", f"-idirafter{include.parent}"]
        subprocess.run(["cc", "-w", *paths, "-o", program, HERE / "offsets.c"], check=True)
        lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    values = {name: int(value) for name, value in (line.split() for line in lines.splitlines())}
    version = values.pop("version")
    return (version >> 24, version >> 16 & 255, version >> 8 & 255), values


def validate(name: str, values: dict[str, int]) -> None:
    """Refuses a table whose sizes do not hold their fields, or that contradicts layout.h."""
    for part in ("thread", "frame", "code"):
        outside = {"frame.localsplus", "thread.root_cframe"}
        if name >= "3.11":
            outside.add("code.bytecode")
        for field, value in values.items():
            inside = field.startswith(part + ".") and field not in outside | {part + ".size"}
            if inside and value >= values[part + ".size"]:
                sys.exit(f"{name}: {field} = {value} lies outside {part}.size")
    for field, value in {"previous": 0, "size": 8, "top": 16, "data": 24}.items():
        if values.get("chunk." + field, value) != value:
            sys.exit(f"{name}: chunk.{field} is not {value} as layout.h says")


def render(columns: dict[tuple[int, int, int], dict[str, int]]) -> str:
    versions = sorted(columns)
    names = list(dict.fromkeys(name for version in versions for name in columns[version]))
    names = [name for name in names if not name.startswith("chunk.")]
    group_order = list(dict.fromkeys(name.split(".")[0] for name in names))
    names.sort(key=lambda name: group_order.index(name.split(".")[0]))
    out = HEAD.format(versions=", ".join(".".join(map(str, version)) for version in versions))
    header = [f"{major}.{minor}" for major, minor, _ in versions]
    out += f"    // {'':36}" + "".join(f"{text:>7}" for text in header) + "\n"
    for name in names:
        cells = [columns[version].get(name) for version in versions]
        texts = ["kNone" if cell is None else str(cell) for cell in cells]
        body = ", ".join(f"{text:>5}" for text in texts)
        out += f"    {{{f'FIELD({name}),':<38}{{{body}}}}},\n"
    return out + TAIL.format()


def committed_columns() -> dict[str, dict[str, int]]:
    """Reads layout_tables.cpp back: release -> field -> offset."""
    text = TABLE.read_text()
    releases = re.search(r"// +((?:3\.\d+ *)+)$", text, re.M).group(1).split()
    columns: dict[str, dict[str, int]] = {release: {} for release in releases}
    for name, body in re.findall(r"\{FIELD\(([\w.]+)\), +\{([^}]*)\}\}", text):
        for release, cell in zip(releases, body.split(",")):
            if cell.strip() != "kNone":
                columns[release][name] = int(cell)
    return columns


def check(name: str, release: str, values: dict[str, int]) -> int:
    expected = committed_columns()[release]
    values = {field: value for field, value in values.items() if not field.startswith("chunk.")}
    wrong = [
        f"  {field}: table {expected.get(field)}, headers {values.get(field)}"
        for field in sorted(expected.keys() | values.keys())
        if expected.get(field) != values.get(field)
    ]
    print(
        f"{name}: " + ("differs\n" + "\n".join(wrong) if wrong else f"{len(values)} fields agree")
    )
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("python", nargs="+", help="interpreter, or folder of its headers")
    options = parser.parse_args()
    columns = {}
    wrong = 0
    for python in options.python:
        version, values = measure(python)
        name = ".".join(map(str, version))
        if not FIRST <= version[:2] <= LAST:
            sys.exit(f"{python} is {name}: the table holds 3.8 to 3.12")
        validate(f"{version[0]}.{version[1]:02}", values)
        if options.check:
            wrong += check(name, f"{version[0]}.{version[1]}", values)
        columns[version] = values
    if options.check:
        return 1 if wrong else 0
    if sorted(version[:2] for version in columns) != [(3, minor) for minor in range(8, 13)]:
        sys.exit("to write the table, give one interpreter of each of 3.8 to 3.12")
    TABLE.write_text(render(columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
