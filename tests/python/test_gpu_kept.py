# SPDX-License-Identifier: Apache-2.0
"""What a recording has of a GPU when the program is killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpu_traced import traced
from on_mock_gpu import HERE, MOCK
from pystrobe import read as pystrobe_read
from pystrobe_command import Pystrobe

KILLED = """
import os, signal, time
import gpu_program as t

def work():
    for _ in range(10):
        t.launch(20)
    time.sleep(0.01)

t.begin()
end = time.monotonic() + 4.5
while time.monotonic() < end:
    work()
os.kill(os.getpid(), signal.SIGKILL)
"""


def check_what_was_kept(option: str, recording: Path) -> None:
    gpu = pystrobe_read(str(recording)).gpu
    assert gpu is not None
    kept = [work for work in gpu.sums if any(f.function == "work" for f in work.frames)]
    assert sum(work.count + work.untimed for work in kept) > 500, "of some 1,800 in two seconds"
    if option == "--gpu":
        assert sum(use.idle_ns for use in gpu.uses) > 1e9, "it was idle most of the time"
    assert "alone, as the program was cut short" in gpu.quality.line
    assert gpu.quality.duration_ns > 2e9


def test_of_a_script_that_is_killed_there_is_what_was_kept(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    """Of two at once: it takes its time, but little of the CPUs'."""
    script = tmp_path / "a.py"
    script.write_text(KILLED)
    variables = {**os.environ, "PYTHONPATH": str(HERE), "LD_LIBRARY_PATH": str(MOCK)}
    recordings = {option: tmp_path / f"a{option}.strobe" for option in ("--gpu", "--gpu-launches")}
    runs = {
        option: pystrobe.start(
            *("run", option, "--python", sys.executable, "-o", str(path), str(script)),
            env=variables,
        )
        for option, path in recordings.items()
    }
    for option, run in runs.items():
        _, err = run.communicate(timeout=60)
        assert run.returncode == 128 + 9
        assert "kernels" in err, "and it is shown"
        check_what_was_kept(option, recordings[option])


def test_what_is_kept_meanwhile_is_not_told_beside_the_whole() -> None:
    line, counts = traced(
        """
        with pystrobe.Profiler(gpu=True) as profiler:
            many(100)
            t.synchronize()
            end = time.monotonic() + 3.5
            while time.monotonic() < end:
                pass
            many(20)
        gpu = profiler.profile.gpu
        print(json.dumps([gpu.quality.line, [work.count for work in gpu.sums]]))
        """
    )
    assert "cut short" not in line
    assert sorted(counts) == [20, 100]
