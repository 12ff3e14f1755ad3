# SPDX-License-Identifier: Apache-2.0
"""The readers of sampler/pyabi against every interpreter here: do they say what Python says?"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from find import Interpreter, find

pytestmark = pytest.mark.beside_others

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ROOT / "tests" / "targets"


@pytest.fixture(params=find(), ids=lambda one: f"{one.version}{'t' if one.free_threaded else ''}")
def python(request: pytest.FixtureRequest) -> Interpreter:
    """Every interpreter, all patch releases: layouts may differ between them."""
    return request.param


def probe_path() -> Path:
    """The newest build of pyabi_probe."""
    given = os.environ.get("PYSTROBE_BUILD_DIR")
    builds = [Path(given)] if given else sorted((ROOT / "build").glob("*"))
    found = [build / "tests/cpp/pyabi_probe" for build in builds]
    found = [path for path in found if path.exists()]
    if not found:
        pytest.skip("pyabi_probe is not built")
    return max(found, key=lambda path: path.stat().st_mtime)


class Target:
    """A program under test and the probe that looks at it."""

    def __init__(self, interpreter: Interpreter, program: str, *arguments: str) -> None:
        # The program goes in by -c: it cannot be opened inside a root directory of its own.
        source = (TARGETS / program).read_text()
        self.process = subprocess.Popen(
            interpreter.command("-X", "utf8", "-I", "-c", source, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.interpreter = interpreter
        self.about = json.loads(self.process.stdout.readline())

    def lines(self) -> Iterator[str]:
        """What the program says, until "end"."""
        for line in self.process.stdout:
            if line == "end\n":
                return
            yield line
        raise AssertionError("the program ended early")

    def ask_all(self, questions: list[str]) -> list[list[str]]:
        """The lines of the probe's answer to each question."""
        about = (self.about[key] for key in ("runtime", "hexversion", "code_type"))
        done = subprocess.run(
            [str(probe_path()), str(self.process.pid), *map(str, about)],
            input="\n".join(questions),
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        answers = [answer.split("\n")[:-1] for answer in done.stdout.split("--- end\n")[:-1]]
        assert len(answers) == len(questions)
        return answers

    def ask(self, question: str) -> list[str]:
        return self.ask_all([question])[0]

    def close(self) -> None:
        self.process.communicate(timeout=30)


@pytest.fixture
def target(python: Interpreter) -> Iterator[object]:
    """Starts programs: target("name.py", arguments...)."""
    started = []

    def start(program: str, *arguments: str) -> Target:
        started.append(Target(python, program, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


def headers(interpreter: Interpreter) -> Path:
    """The folder of its Python.h."""
    code = "import sysconfig; print(sysconfig.get_paths()['include'])"
    shown = subprocess.run(interpreter.command("-c", code), capture_output=True, text=True)
    return Path((interpreter.root or "") + shown.stdout.strip())


def measured_offsets(include: Path) -> dict[str, int]:
    """What a C compiler says of these headers."""
    path = ROOT / "sampler/pyabi/generate/generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate.measure(str(include))[1]


def test_offsets_are_those_of_the_headers(target, python: Interpreter) -> None:
    include = headers(python)
    if not (include / "internal").exists():
        pytest.skip(f"no headers in {include}")
    expected = measured_offsets(include)
    answer = dict(line.split() for line in target("code_objects.py", "").ask("layout"))
    seen = {name: int(value) for name, value in answer.items()}
    # Enough of a structure is read, whatever the order of its fields.
    sizes = {"thread.size", "frame.size", "code.size"}
    for name in expected.keys() | seen.keys():
        if name in sizes or name.startswith("chunk."):
            continue
        assert seen.get(name) == expected.get(name), name
    assert all(seen[name] >= expected[name] for name in sizes)


def test_names_files_and_lines_are_those_python_says(target) -> None:
    program = target("code_objects.py")
    expected = [json.loads(line) for line in program.lines()]
    assert len(expected) > 2000
    answers = program.ask_all([f"code {code['address']}" for code in expected])
    wrong = [
        (code, answer)
        for code, answer in zip(expected, answers)
        if answer != ["\t".join((code["name"], code["file"], code["lines"]))]
    ]
    assert not wrong, f"{len(wrong)} of {len(expected)}, first: {wrong[0]}"


def frames_of(answer: list[str]) -> list[tuple[list, list]]:
    """[([name, file, line], [[kind, name, value], ...]), ...] of an answer to "frames"."""
    frames: list[tuple[list, list]] = []
    for line in answer:
        kind, *rest = line.split("\t")
        if kind == "frame":
            frames.append(([rest[0], rest[1], int(rest[2])], []))
        else:
            frames[-1][1].append([kind, *rest])
    return frames


def test_threads_frames_and_locals_are_those_python_shows(target) -> None:
    program = target("threads_and_locals.py")
    names, *threads, truth = (json.loads(line) for line in program.lines())
    seen = dict(line.split(" ", 1) for line in program.ask("names"))
    assert seen == names["names"]
    functions = {}
    for thread in threads:
        frames = frames_of(program.ask(f"frames {thread['ident']}"))
        assert [frame for frame, _ in frames] == thread["frames"]
        for (name, _, _), variables in frames:
            functions[name.split(".")[-1]] = variables
    for function, expected in truth["locals"].items():
        assert functions[function] == expected, function
