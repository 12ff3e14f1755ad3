# SPDX-License-Identifier: Apache-2.0
"""docs/format.md is right: a reader written from it reads the golden files as pystrobe does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.beside_others

TESTS = Path(__file__).resolve().parent.parent
GOLDEN = sorted((TESTS / "golden" / "strobe").glob("*.strobe"))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_a_reader_written_from_the_page_agrees(golden: Path) -> None:
    pytest.importorskip("zstandard")
    reader = TESTS / "readers" / "strobe.py"
    done = subprocess.run(
        [sys.executable, reader, golden], check=True, capture_output=True, encoding="utf-8"
    )
    assert done.stdout == golden.with_suffix(".txt").read_text(encoding="utf-8")


def test_there_is_a_golden_file() -> None:
    assert GOLDEN
