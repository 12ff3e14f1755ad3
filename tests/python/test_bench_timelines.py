# SPDX-License-Identifier: Apache-2.0
"""The programs that timelines are measured by work with the workload of `pystrobe bench`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pystrobe.bench._turns import program
from pystrobe_command import REPOSITORY

sys.path.append(str(REPOSITORY / "bench"))
import whole_timeline

pytestmark = pytest.mark.beside_others


def test_all_calls_are_in_the_timeline(tmp_path: Path) -> None:
    with program() as traced:
        timeline = shutil.copy(REPOSITORY / "bench/workloads/timeline.py", traced.parent)
        command = [sys.executable, str(timeline), "pystrobe", "1", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(done.stdout)
    assert told["kept"] == told["made"] > 20_000
    assert set(told["bytes"]) == set(told["save"]) == {"strobe", "perfetto-trace", "trace.json"}


def test_a_whole_timeline_is_counted_by_its_report(tmp_path: Path) -> None:
    with program() as traced:
        script = shutil.copy(REPOSITORY / "bench/workloads/whole.py", traced.parent)
        turn = whole_timeline.turn(str(script), 5, tmp_path / "whole.strobe")
    row = whole_timeline.figures(turn)
    assert row["calls"] == 5 * 21_891
    assert row["kept_percent"] == 100
    assert 0 < row["bytes_per_call"]["median"] < 10
