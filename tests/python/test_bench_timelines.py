# SPDX-License-Identifier: Apache-2.0
"""The program that timelines are measured by works with the workload of `pystrobe bench`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from pystrobe.bench._turns import program
from pystrobe_command import REPOSITORY


def test_all_calls_are_in_the_timeline(tmp_path: Path) -> None:
    with program() as traced:
        timeline = shutil.copy(REPOSITORY / "bench/workloads/timeline.py", traced.parent)
        command = [sys.executable, str(timeline), "pystrobe", "1", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(done.stdout)
    assert told["kept"] == told["made"] > 20_000
    assert set(told["bytes"]) == set(told["save"]) == {"strobe", "perfetto-trace", "trace.json"}
