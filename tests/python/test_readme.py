# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/tracing.md say what was measured."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.beside_others

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_tables_are_those_of_the_results() -> None:
    command = [sys.executable, str(REPOSITORY / "bench" / "readme.py"), "--check"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_what_it_refers_to_is_there() -> None:
    text = (REPOSITORY / "README.md").read_text()
    files = set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text))
    assert len(files) > 10
    assert not [name for name in files if not (REPOSITORY / name).exists()]
