# SPDX-License-Identifier: Apache-2.0
"""The pystrobe executable under test and what its runs left."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import collapsed

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def find_executable() -> Path | None:
    """PYSTROBE of the environment, else the one installed in .venv, else the newest build."""
    if named := os.environ.get("PYSTROBE"):
        return Path(named).resolve()
    installed = REPOSITORY / ".venv" / "bin" / "pystrobe"
    if installed.exists():
        return installed
    built = [path for path in REPOSITORY.glob("build/*/cli/pystrobe") if path.is_file()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


@dataclass
class Finished:
    """A command that ended."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass
class Recorded:
    """A recording, and reports made of it on request."""

    tool: Pystrobe
    path: Path
    finished: Finished

    def collapsed(self, *options: str) -> list[collapsed.Stack]:
        return collapsed.parse(self._report("collapsed", *options))

    def json(self, *options: str) -> dict[str, Any]:
        return dict(json.loads(self._report("json", *options)))

    def _report(self, form: str, *options: str) -> str:
        out = self.path.with_suffix(f".{form}")
        arguments = ["-f", form, "-o", str(out), "--force", *options]
        self.tool.succeed("report", str(self.path), *arguments)
        return out.read_text()


@dataclass
class Pystrobe:
    """Runs the executable, on a CPU of its own if there is one for it."""

    executable: Path
    directory: Path

    def start(
        self, *arguments: str, cpu: int | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        pin = None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})
        return subprocess.Popen(
            [str(self.executable), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=pin,
            **options,
        )

    def run(
        self, *arguments: str, cpu: int | None = None, timeout: float = 60, **options: Any
    ) -> Finished:
        with self.start(*arguments, cpu=cpu, **options) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Finished(process.returncode, out, err)

    def succeed(self, *arguments: str, **options: Any) -> Finished:
        finished = self.run(*arguments, **options)
        assert finished.code == 0, f"pystrobe {' '.join(arguments)}: {finished}"
        return finished

    def attach(
        self,
        pid: int,
        *arguments: str,
        seconds: float = 1,
        rate: float | None = 1000,
        cpu: int | None = None,
    ) -> Recorded:
        """Samples for so long, at this or its own rate, into a recording of this test's own."""
        path = self.directory / f"{pid}-{len(list(self.directory.iterdir()))}.strobe"
        finished = self.succeed(
            *("attach", str(pid), "-d", f"{seconds:g}"),
            *(() if rate is None else ("-r", f"{rate:g}")),
            *("-o", str(path), *arguments),
            cpu=cpu,
            timeout=seconds + 30,
        )
        return Recorded(self, path, finished)

    def dump(self, pid: int, *arguments: str) -> dict[str, Any]:
        return dict(json.loads(self.succeed("dump", str(pid), "--json", *arguments).out))


def kept_recording(finished: Finished) -> Path:
    match = re.search(r"nothing recorded is lost: it is in (\S+\.strobe)", finished.err)
    assert match, finished
    return Path(match[1])


def report_of_kept(pystrobe: Pystrobe, finished: Finished) -> dict[str, Any]:
    """The recording that was kept, as JSON; takes it away."""
    kept = kept_recording(finished)
    try:
        return dict(json.loads(pystrobe.succeed("report", str(kept), "-f", "json").out))
    finally:
        kept.unlink()


def with_few_descriptors(pystrobe: Pystrobe, limit: int, *arguments: str) -> Finished:
    """It can open no more files at once than that."""
    done = subprocess.run(
        [str(pystrobe.executable), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def without_threads(pystrobe: Pystrobe, *arguments: str) -> Finished:
    """A limit on the stack is also the size of a thread's, and this one fits nowhere."""
    size = 1 << 50
    done = subprocess.run(
        [str(pystrobe.executable), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (size, size)),
    )
    return Finished(done.returncode, done.stdout, done.stderr)
