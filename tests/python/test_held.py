# SPDX-License-Identifier: Apache-2.0
"""For how long a sample holds its thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from find import Interpreter
from own_program import MODES, answer
from pystrobe_command import Pystrobe
from running import running

package = pytest.importorskip("pystrobe", reason="the package is not installed: make build")

GOLDEN = Path(__file__).parents[1] / "golden" / "strobe"
ERROR = 1.0625  # of a quantile


def check(quality: dict[str, Any]) -> None:
    """Figures that can be true of one recording."""
    count, median, most = (quality[f"held_{name}"] for name in ("count", "median_ns", "p99_ns"))
    # A copy made ahead of its time that proves nothing is made up for by another look.
    assert 0 < count <= quality["taken"] + quality["lost"] + quality["retries"], quality
    assert 0 < median <= most, quality
    # Half of them took no less than the median, and one in a hundred no less than the other.
    assert median / ERROR * count / 2 <= quality["held_ns"], quality
    assert most / ERROR * (count // 100) <= quality["held_ns"], quality


@MODES
def test_a_program_that_samples_itself_is_told(mode: str) -> None:
    quality = answer(
        """
import dataclasses, json, pystrobe
with pystrobe.Profiler(mode=MODE, rate=1000) as profiler:
    work(2)
print(json.dumps(dataclasses.asdict(profiler.profile.quality)))
""",
        mode,
    )
    check(quality)
    # Each sample is a look by the thread itself; from threads of ours those at naps hold nobody.
    assert quality["held_count"] == quality["taken"] or mode == "wall"


@pytest.mark.parametrize("pause", ["preempt", "ptrace"])
def test_the_target_of_an_attach_is_told(
    pystrobe: Pystrobe, newest: Interpreter, pause: str
) -> None:
    with running(newest, "tower") as target:
        recorded = pystrobe.attach(target.pid, "--pause", pause, seconds=0.5, rate=1000)
    check(recorded.json()["quality"])
    assert package.read(recorded.path).quality.held_count > 0


def test_older_files_do_not_tell() -> None:
    older = package.read(GOLDEN / "v2.5.strobe").quality
    assert (older.held_count, older.held_median_ns, older.held_p99_ns) == (0, None, None)
