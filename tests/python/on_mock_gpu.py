# SPDX-License-Identifier: Apache-2.0
"""Programs that use pystrobe.gpu, in processes of their own: with the mock driver of
tests/mock_cuda, or without any."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

from own_interpreters import THIS, Own

HERE = Path(__file__).resolve().parent
MOCK = (
    Path(os.environ.get("PYSTROBE_BUILD", HERE.parents[1] / "build/release")).resolve()
    / "mock_cuda"
)


def start(
    program: str, driver: bool, environment: dict[str, str], own: Own = THIS
) -> tuple[str, str]:
    """What ``program`` prints to stdout and stderr, in a process of its own."""
    given = own.environment()
    path = os.pathsep.join([str(HERE), given.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    variables = {**given, "PYTHONPATH": path, **environment}
    preamble = "import json, sys, time\nimport pystrobe\nfrom pystrobe import gpu\n"
    if driver:
        variables["LD_LIBRARY_PATH"] = str(MOCK)
        preamble += "import gpu_program as t\n"
    ended = subprocess.run(
        [*own.command, "-c", preamble + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=variables,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip(), ended.stderr.strip()


def run(program: str, *, driver: bool = True, own: Own = THIS, **environment: str) -> str:
    """What ``program`` prints in a process of its own; `t` is gpu_program there."""
    return start(program, driver, environment, own)[0]
