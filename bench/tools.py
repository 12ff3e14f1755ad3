# SPDX-License-Identifier: Apache-2.0
"""The profilers side by side: how each is started and how what it wrote is read."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paths  # isort: skip
import collapsed
from collapsed import Stack, make_frame
from find import Interpreter, directory
from pystrobe_command import find_executable
from running import inside

MAX_RATE = 1_000_000.0
CONVERTING_S = 60  # the most that it may take to make a recording readable


@dataclass(frozen=True)
class Request:
    """What is asked of a tool."""

    interpreter: Interpreter
    pid: int
    seconds: int
    rate: float
    output: Path  # without suffix; the tool adds its own
    all_threads: bool = False
    cpu_time: bool = False


@dataclass(frozen=True)
class Recording:
    """What a tool wrote, in its own file, and its stacks."""

    file: Path
    stacks: list[Stack]  # values are samples
    weighted: list[Stack]  # values are what the tool says of time: its weights or samples


Command = Callable[[Request], list[str]]
Reader = Callable[[Request], Recording]


@dataclass(frozen=True)
class Tool:
    """A profiler in one of its modes."""

    name: str
    command: Command
    read: Reader
    supports: Callable[[Interpreter], bool]
    dump: Callable[[Interpreter, int], list[str]]
    exit_codes: frozenset[int] = field(default=frozenset({0}))
    cpu_mode: bool = True  #: finds a thread wherever it ran when CPU time is asked for


# --- pystrobe


def executable() -> str:
    found = find_executable()
    if not found:
        raise SystemExit("no pystrobe executable: build it, or name it in PYSTROBE")
    return str(found)


def pystrobe_command(*options: str) -> Command:
    def command(request: Request) -> list[str]:
        return [
            *(executable(), "attach", str(request.pid), "-q", "-d", str(request.seconds)),
            *("-r", f"{request.rate:g}", "-o", f"{request.output}.strobe", "--force", *options),
        ]

    return command


def report(file: Path, form: str, *options: str) -> Path:
    out = file.with_suffix(f".{form}")
    subprocess.run(
        [executable(), "report", str(file), "-f", form, "-o", str(out), "--force", *options],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return out


def read_pystrobe(request: Request) -> Recording:
    file = Path(f"{request.output}.strobe")
    mode = ["--mode", "cpu" if request.cpu_time else "wall"]
    idle = ["--idle"] if request.all_threads else []
    samples = report(file, "collapsed", *mode, *idle).read_text()
    times = report(file, "collapsed", *mode, *idle, "--unit", "ns").read_text()
    return Recording(file, collapsed.parse(samples), collapsed.parse(times))


def quality(recording: Recording) -> dict[str, Any]:
    """What pystrobe itself says of a recording; nothing for the recordings of others."""
    if recording.file.suffix != ".strobe":
        return {}
    return {"quality": json.loads(report(recording.file, "json").read_text())["quality"]}


def pystrobe(name: str, *options: str) -> Tool:
    return Tool(
        name,
        pystrobe_command(*options),
        read_pystrobe,
        lambda interpreter: True,
        lambda interpreter, pid: [executable(), "dump", str(pid)],
    )


# --- py-spy


def pyspy(name: str, *options: str) -> Tool:
    program = str(paths.PEERS / "bin" / "py-spy")

    def command(request: Request) -> list[str]:
        idle = ["--idle"] if request.all_threads else []
        return [
            *(program, "record", "-p", str(request.pid), "-d", str(request.seconds)),
            *("-r", f"{request.rate:.0f}", "-f", "raw", "-o", f"{request.output}.raw"),
            *(*options, *idle),
        ]

    def read(request: Request) -> Recording:
        file = Path(f"{request.output}.raw")
        stacks = collapsed.parse(file.read_text())
        return Recording(file, stacks, stacks)

    return Tool(
        name,
        command,
        read,
        lambda interpreter: not interpreter.free_threaded,
        lambda interpreter, pid: [program, "dump", "-p", str(pid), *options],
    )


# --- Austin


def austin_program() -> list[str]:
    """Its wheel needs glibc 2.38: where that is lacking, sid's dynamic loader runs it."""
    program = str(paths.PEERS / "bin" / "austin")
    glibc = tuple(int(part) for part in platform.libc_ver()[1].split("."))
    if glibc >= (2, 38):
        return [program]
    root = directory() / "sid"
    libraries = f"{root}/lib/{platform.machine()}-linux-gnu"
    return [f"{root}/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, program]


def parse_austin(lines: Iterator[str]) -> Iterator[Stack]:
    """P1;T0:1;file:function:line;... MICROSECONDS; one line per sample and thread."""
    for line in lines:
        if not line.startswith("P"):
            continue
        stack, _, value = line.rstrip("\n").rpartition(" ")
        _, thread, *frames = stack.split(";")
        parts = [frame.rsplit(":", 2) for frame in frames if not frame.startswith(":")]
        yield Stack(
            tuple(make_frame(name, file, int(number)) for file, name, number in parts),
            int(value),
            thread,
        )


def read_austin(request: Request) -> Recording:
    file = Path(f"{request.output}.mojo")
    text = file.with_suffix(".austin")
    converting = [str(paths.PEERS / "bin" / "mojo2austin"), str(file), str(text)]
    subprocess.run(converting, check=True, timeout=CONVERTING_S)
    with text.open() as lines:
        weighted = list(parse_austin(lines))
    return Recording(file, [stack._replace(samples=1) for stack in weighted], weighted)


def austin_command(request: Request) -> list[str]:
    interval = max(1, round(1e6 / request.rate))
    mode = ["-c"] if request.cpu_time else []
    return [
        *(*austin_program(), "-i", f"{interval}us", "-x", str(request.seconds), *mode),
        *("-p", str(request.pid), "-o", f"{request.output}.mojo"),
    ]


def austin(name: str) -> Tool:
    return Tool(
        name,
        austin_command,
        read_austin,
        lambda interpreter: (
            (3, 9) <= interpreter.minor <= (3, 14)
            and not interpreter.free_threaded
            and not interpreter.root
        ),
        lambda interpreter, pid: [*austin_program(), "-w", str(pid)],
        frozenset({0, 254}),  # 254 is how its attached runs end, complete or not
    )


# --- profiling.sampling of CPython 3.15


def tachyon(name: str, *options: str) -> Tool:
    def command(request: Request) -> list[str]:
        output = inside(request.interpreter, Path(f"{request.output}.tachyon"))
        threads = ["-a"] if request.all_threads else []
        mode = ["--mode", "cpu"] if request.cpu_time else []
        return request.interpreter.command(
            *("-m", "profiling.sampling", "attach", "-r", f"{request.rate:.0f}"),
            *("-d", str(request.seconds), "--no-gc", "--collapsed", "-o", output),
            *(*options, *threads, *mode, str(request.pid)),
        )

    def read(request: Request) -> Recording:
        file = Path(f"{request.output}.tachyon")
        stacks = []
        for line in file.read_text().splitlines():
            stack, _, value = line.rpartition(" ")
            thread, *frames = stack.split(";")
            parts = [frame.rsplit(":", 2) for frame in frames]
            known = tuple(make_frame(part[1], part[0], int(part[2])) for part in parts)
            stacks.append(Stack(known, int(value), thread))
        return Recording(file, stacks, stacks)

    def dump(interpreter: Interpreter, pid: int) -> list[str]:
        arguments = ["-m", "profiling.sampling", "dump", "-a", "--no-gc", *options, str(pid)]
        return interpreter.command(*arguments)

    return Tool(
        name,
        command,
        read,
        lambda interpreter: interpreter.minor == (3, 15) and not interpreter.free_threaded,
        dump,
        cpu_mode=False,  # with --blocking it finds none that runs: it has stopped them itself
    )


#: Does nothing to the target: what chance alone makes of the figures.
NOTHING = Tool(
    "none",
    lambda request: ["sleep", str(request.seconds)],
    lambda request: Recording(request.output, [], []),
    lambda interpreter: True,
    lambda interpreter, pid: ["true"],
)
PYSTROBE = pystrobe("pystrobe")
PYSTROBE_PTRACE = pystrobe("pystrobe --pause ptrace", "--pause", "ptrace")
PYSTROBE_NONE = pystrobe("pystrobe --pause none", "--pause", "none")
PYSPY = pyspy("py-spy")
PYSPY_NONBLOCKING = pyspy("py-spy --nonblocking", "--nonblocking")
AUSTIN = austin("Austin")
TACHYON = tachyon("profiling.sampling")
TACHYON_BLOCKING = tachyon("profiling.sampling --blocking", "--blocking")

ALL = [
    PYSTROBE,
    PYSTROBE_PTRACE,
    PYSTROBE_NONE,
    PYSPY,
    PYSPY_NONBLOCKING,
    AUSTIN,
    TACHYON,
    TACHYON_BLOCKING,
]
#: Each profiler in the way that it works by itself.
PLAIN = [PYSTROBE, PYSPY, AUSTIN, TACHYON]


def revision() -> str:
    """Of the checkout, "-dirty" where files differ from it. What is measured was built from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(
        command, cwd=paths.REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "no checkout"


def versions() -> dict[str, str]:
    """What is compared, as each calls itself."""

    def ask(command: list[str]) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"does not start: {error}"
        return ((done.stdout or done.stderr).strip().splitlines() or ["no answer"])[-1]

    return {
        "pystrobe": f"{ask([str(find_executable()), '--version'])} ({revision()})",
        "py-spy": ask([str(paths.PEERS / "bin" / "py-spy"), "--version"]),
        "Austin": ask([*austin_program(), "--version"]),
    }


def own_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
