# SPDX-License-Identifier: Apache-2.0
"""Profiler(gpu="launches"): what a GPU is given to do, counted, and nothing that it tells."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from gpu_traced import PREAMBLE, traced
from on_mock_gpu import HERE, MOCK, run
from own_interpreters import THIS, Own
from pystrobe import read as pystrobe_read
from pystrobe_command import Pystrobe

pytestmark = pytest.mark.beside_others

COUNTS = """
def counts(profile):
    return [
        [[f.function for f in w.frames], w.short_name, w.untimed]
        for w in profile.gpu.sums
    ]
"""


def counted(program: str, own: Own = THIS) -> Any:
    return traced(COUNTS + textwrap.dedent(program), own)


def test_launches_are_counted_by_path_and_kernel(own: Own) -> None:
    found, sums, quality, waits = counted(
        """
        import ctypes
        ctypes.CDLL("libcupti.so.13").mock_cupti_set_device(1)
        with pystrobe.Profiler(mode="gpu", gpu="launches") as profiler:
            many(100)
            leaf(20)
            leaf(5000)
            t.synchronize()
        gpu = profiler.profile.gpu
        print(json.dumps([
            counts(profiler.profile),
            [[w.count, w.total_ns, w.device, w.stream] for w in gpu.sums],
            gpu.quality.__dict__,
            [[w.frames[-1].function, w.count, w.total_ns] for w in gpu.waits],
        ]))
        """,
        own,
    )
    assert sorted(found) == [
        [["<module>", "leaf", "launch"], "sleep_20000", 1],
        [["<module>", "leaf", "launch"], "sleep_5000000", 1],
        [["<module>", "many", "leaf", "launch"], "sleep_5000", 100],
    ]
    assert all(numbers == [0, 0, 1, None] for numbers in sums)
    assert quality["launches_only"] is True
    assert (quality["kernel_launches"], quality["records"]) == (102, 0)
    assert quality["line"].startswith("good; 102 launches counted, and nobody asked")
    assert [(function, count) for function, count, _ in waits] == [("synchronize", 1)]
    assert waits[0][2] > 1_000_000, "of the 5 ms of the last kernel"


def test_cupti_makes_no_record() -> None:
    found = counted(
        """
        import ctypes
        records = ctypes.CDLL("libcupti.so.13").mock_cupti_records
        records.restype = ctypes.c_uint64
        before = records()
        with pystrobe.Profiler(mode="gpu", gpu="launches"):
            many(50)
        between = records()
        with pystrobe.Profiler(mode="gpu") as profiler:
            many(50)
        print(json.dumps([between - before, records() - between, profiler.profile.gpu.total_ns]))
        """
    )
    assert found == [0, 50, 250_000], "and the next one has all of them"


def test_what_fails_or_is_captured_is_not_counted() -> None:
    found, quality = counted(
        """
        def failing():
            t.fail_next("cuLaunchKernel", 1)
            try:
                leaf()
            except AssertionError:
                pass
        with pystrobe.Profiler(mode="gpu", gpu="launches") as profiler:
            failing()
            graph = t.instantiate(t.capture(3), 3)
            for _ in range(5):
                t.launch_graph(graph, 3)
        print(json.dumps([counts(profiler.profile), profiler.profile.gpu.quality.__dict__]))
        """
    )
    assert found == [[["<module>", "launch_graph"], "cuGraphLaunch", 5]]
    assert quality["failed"] == 1
    assert quality["captured"] == 3
    assert "good; 5 launches counted" in quality["line"]


def test_a_schedule_leaves_out_what_was_before() -> None:
    found = counted(
        """
        schedule = pystrobe.gpu.schedule(wait=1, warmup=1, active=2, repeat=1)
        with pystrobe.Profiler(mode="gpu", gpu="launches", schedule=schedule) as profiler:
            for step in range(6):
                many(10 + step)
                profiler.step()
        print(json.dumps(counts(profiler.profile)))
        """
    )
    assert [count for *_, count in found] == [12 + 13]


def test_threads_lose_no_launch() -> None:
    found = counted(
        """
        def work():
            t.begin()
            many(500)
        with pystrobe.Profiler(mode="gpu", gpu="launches") as profiler:
            threads = [threading.Thread(target=work) for _ in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        print(json.dumps(counts(profiler.profile)))
        """
    )
    assert [count for *_, count in found] == [2000]


def test_a_timeline_is_refused() -> None:
    said = run(
        """
        import pystrobe
        for options in ({"timeline": True}, {"mode": "gpu", "timeline": True}):
            try:
                pystrobe.Profiler(gpu="launches", **options)
            except pystrobe.InvalidArgumentError as error:
                print(" ".join(str(error).split()))
        try:
            pystrobe.Profiler(gpu="kernels")
        except pystrobe.InvalidArgumentError as error:
            print(" ".join(str(error).split()))
        try:
            pystrobe.Tracer(gpu="launches")
        except pystrobe.InvalidArgumentError as error:
            print(" ".join(str(error).split()))
        """
    )
    timeline, again, unknown, of_tracer = said.splitlines()
    refused = "timeline=True with gpu='launches' when work ran is told with gpu=True alone"
    assert (timeline, again) == (refused, refused)
    assert unknown == "gpu='kernels' True, False or 'launches'"
    assert of_tracer == "gpu='launches' True or False"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "launches.strobe"
    run(
        PREAMBLE
        + textwrap.dedent(
            f"""
            with pystrobe.Profiler(gpu="launches") as profiler:
                many(30)
                leaf(20)
                t.synchronize()
            profiler.profile.save({str(path)!r})
            """
        )
    )
    return path


def test_the_table_is_by_number(pystrobe: Pystrobe, recording: Path) -> None:
    text = pystrobe.succeed("report", str(recording), "--gpu").out
    assert "What was put on GPUs: 31 kernels launched" in text
    assert "      %   launches  kernel\n" in text
    rows = [line.split() for line in text.splitlines() if "sleep_" in line]
    assert rows == [["96.8", "30", "sleep_5000"], ["3.2", "1", "sleep_20000"]]
    assert "Threads waited for the GPU for" in text
    assert "Quality of the GPU's figures: good; 31 launches counted" in text
    note = pystrobe.succeed("report", str(recording)).out
    assert "GPU: 31 kernels launched:" in note


def test_every_format_takes_it(pystrobe: Pystrobe, recording: Path, tmp_path: Path) -> None:
    collapsed = pystrobe.succeed("report", str(recording), "--gpu", "-f", "collapsed").out
    counts = sorted(int(line.rsplit(" ", 1)[1]) for line in collapsed.splitlines())
    assert counts == [1, 30]
    data = json.loads(pystrobe.succeed("report", str(recording), "-f", "json").out)
    assert data["gpu"]["quality"]["launches_only"] is True
    assert all("stream" not in work for work in data["gpu"]["sums"])
    for name in ("x.html", "x.pb.gz", "x.speedscope.json"):
        pystrobe.succeed("report", str(recording), "--gpu", "-o", str(tmp_path / name))
    gpu = pystrobe_read(recording).gpu
    assert gpu is not None
    assert [(row.short_name, row.untimed) for row in gpu.kernels] == [
        ("sleep_5000", 30),
        ("sleep_20000", 1),
    ]


def test_a_trace_may_end_before_the_sampler_that_watches_it() -> None:
    """As where Ctrl-C comes while the profiler begins."""
    found = counted(
        """
        from pystrobe import _core
        from pystrobe.gpu._trace import Trace
        trace = Trace(timeline=False)
        sampler = _core.OwnSampler(True, 1000, 0, False, False, _core.__version__, "", None)
        trace.watch_with(sampler)
        sampler.start()
        many(10)
        trace.drop()
        del trace
        end = time.monotonic() + 3
        while time.monotonic() < end:
            pass
        recording = sampler.stop()
        with pystrobe.Profiler(mode="gpu", gpu="launches") as profiler:
            many(5)
        print(json.dumps([recording.report(None, None, 0.0, None, False)["gpu"] is None,
                          [count for *_, count in counts(profiler.profile)]]))
        """
    )
    assert found == [True, [5]]


def test_run_counts_launches(pystrobe: Pystrobe, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import gpu_program as t\n" + PREAMBLE + "many(40)\n", encoding="utf-8")
    recording = tmp_path / "train.strobe"
    variables = {**os.environ, "PYTHONPATH": str(HERE), "LD_LIBRARY_PATH": str(MOCK)}
    arguments = ("--gpu-launches", "--python", sys.executable, "-o", str(recording))
    done = pystrobe.succeed("run", *arguments, str(script), env=variables)
    assert "What was put on GPUs: 40 kernels launched" in done.err
    gpu = pystrobe_read(recording).gpu
    assert gpu is not None
    assert gpu.quality.launches_only
    refused = pystrobe.run("run", "--gpu-launches", "-o", str(tmp_path / "x.trace.json"), "x.py")
    assert refused.code == 2
    assert "which --gpu-launches does not tell" in refused.err
