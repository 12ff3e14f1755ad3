# SPDX-License-Identifier: Apache-2.0
"""What the program did while a GPU had nothing to do, by its samples."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_traced import traced

PROGRAM = """
def compute():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass

def load():
    time.sleep(0.03)

def train():
    for _ in range(25):
        load()
        compute()
        leaf()

with pystrobe.Profiler(mode={mode!r}, gpu=True) as profiler:
    train()
found = profiler.profile.gpu.meanwhile
lines = {{}}
for line in found.lines:
    name = line.frame.function if line.frame else "none"
    wall, cpu = lines.get(name, (0, 0))
    lines[name] = wall + line.wall_ns, cpu + line.cpu_ns
print(json.dumps([found.gaps_ns, found.wall_ns, found.cpu_ns, lines]))
"""


def found(mode: str) -> Any:
    return traced(PROGRAM.format(mode=mode))


@pytest.mark.chance
def test_samples_by_wall_time_tell_where_it_waited_and_computed() -> None:
    gaps, wall, cpu, lines = found("wall")
    # Before the first launch is no gap.
    assert gaps > 24 * 0.04e9
    assert wall == pytest.approx(gaps, rel=0.1)
    assert lines["load"][0] == pytest.approx(0.75 * wall, rel=0.15)
    assert lines["load"][1] < 0.1 * lines["load"][0]
    assert lines["compute"][1] == pytest.approx(24 * 0.01e9, rel=0.25)
    assert cpu < 0.4 * wall


@pytest.mark.chance
def test_samples_by_cpu_time_tell_what_it_computed() -> None:
    gaps, wall, cpu, lines = found("cpu")
    assert wall == 0
    assert cpu == pytest.approx(24 * 0.01e9, rel=0.25)
    assert lines["compute"][1] > 0.8 * cpu
    assert gaps > 24 * 0.04e9


def test_without_samples_nothing_is_said() -> None:
    gaps, *rest = found("gpu")
    assert gaps > 24 * 0.04e9
    assert rest == [0, 0, {}]
