# SPDX-License-Identifier: Apache-2.0
"""By which clocks calls are traced, and what is shown of those that were not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from call_tracing import Way, each_engine, name_of_way, told, ways
from pystrobe_command import Pystrobe

#: `nap` has the elapsed time and `burn` that of the CPU.
PROGRAM = """
import threading, time
def burn():
    end = time.thread_time() + 0.01
    while time.thread_time() < end: pass
def nap():
    time.sleep(0.2)
def work():
    nap()
    burn()
other = threading.Thread(target=nap)
other.start()
work()
other.join()
"""


def told_by(clock: str, way: Way, code: str) -> Any:
    """What ``code`` prints of ``tracer``, which has traced PROGRAM's work by that clock."""
    return told(way, f"{PROGRAM}\ntracer = traced(work, clock={clock!r})\n{code}")


@each_engine
def test_elapsed_time_alone_is_what_it_is_with_both(way: Way) -> None:
    said = told_by(
        "wall",
        way,
        """
facts = tracer._tracer.facts()
rows = {row.function: row for row in tracer.stats()}
corrected = {row.function: row for row in tracer.stats(corrected=True)}
try:
    tracer.stats(sort="self_cpu")
except ValueError as error:
    refused = str(error)
callers = [caller.self_cpu for row in rows.values() for caller in row.callers]
print(json.dumps([facts["cpu_clock"], facts["clock_looks"], rows["nap"].self, rows["work"].total,
    rows["nap"].self_cpu, rows["work"].total_cpu, corrected["nap"].self_cpu, callers, refused,
    str(tracer.profile())]))
""",
    )
    clock, looks, nap, whole, *cpu, callers, refused, text = said
    assert (clock, looks) == ("none", 0)
    assert nap >= 0.2
    assert whole >= 0.21
    assert cpu == [None] * 3
    assert set(callers) == {None}
    assert "no CPU time to sort them by: 'self_cpu'" in refused
    assert "by elapsed time alone" in " ".join(text.split())


@pytest.mark.parametrize("way", {way.engine: way for way in ways()}.values(), ids=name_of_way)
def test_cpu_time_is_that_of_the_kernel(way: Way) -> None:
    """To 0.1 % of what each of three threads used, that want the CPU by turns, and sleep; a second
    all together."""
    said = told(
        way,
        """
used = {}
def step(n):
    return n if n < 2 else step(n - 1) + step(n - 2)
def thread(name):
    begin = time.thread_time()
    while time.thread_time() - begin < 0.34:
        step(10)
        if random.random() < 0.02:
            time.sleep(0.001)
    used[name] = time.thread_time() - begin
def work():
    threads = [threading.Thread(target=thread, args=(f"thread {i}",), name=f"thread {i}")
               for i in range(3)]
    for one in threads: one.start()
    for one in threads: one.join()
tracer = traced(work)
found = {one.name: sum(row.total_cpu for row in one.functions if row.function == "thread")
         for one in tracer.threads() if one.name in used}
print(json.dumps([tracer.cpu_clock, found, used]))
""",
    )
    clock, found, used = said
    if clock != "rseq":
        pytest.skip("without rseq the clock is read every 50 us at most")
    assert len(used) == 3
    assert found == pytest.approx(used, rel=0.001)


@each_engine
def test_the_first_wait_of_a_trace_has_no_time_from_before(way: Way) -> None:
    """To begin a trace takes a millisecond of CPU time, which is nobody's; the least of a few, as
    another program may come in between."""
    more = told(
        way,
        """
def nap():
    time.sleep(0.01)
def used():
    begin = time.thread_time()
    nap()
    spent.append(time.thread_time() - begin)
import time
spent, more = [], []
for _ in range(5):
    tracer = traced(used)
    more.append(sum(row.self_cpu for row in tracer.stats() if row.function == "nap") - spent[-1])
print(json.dumps(more))
""",
    )
    assert min(more) < 0.0003


@each_engine
def test_cpu_time_first(way: Way) -> None:
    said = told_by(
        "cpu",
        way,
        """
print(json.dumps([tracer.stats()[0].function, tracer.stats(sort="self")[0].function,
    tracer.profile().report().mode, tracer.profile().report().functions[0].name,
    str(tracer.profile()), tracer.profile().report(mode="wall").functions[0].name]))
""",
    )
    first, by_wall, mode, in_report, table, in_wall_report = said
    assert [first, by_wall, mode] == ["burn", "nap", "cpu"]
    assert [in_report, in_wall_report] == ["burn", "nap"]
    assert "of cpu time (as the kernel charged it)" in table


def test_no_file_has_a_column_for_time_that_was_not_read(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def made(clock: str) -> dict[str, Path]:
        names = ("x.json", "x.callgrind", "x.strobe", "x.html", "x.pb.gz")
        files = {name: tmp_path / f"{clock}.{name}" for name in names}
        outputs = [word for path in files.values() for word in ("-o", str(path))]
        finished = pystrobe.succeed(
            *("trace", "--python", sys.executable, "--clock", clock, *outputs), str(script)
        )
        assert ("--mode cpu" in " ".join(finished.err.split())) == (clock == "both")
        return files

    wall, both = made("wall"), made("both")
    of_wall, of_both = (json.loads(files["x.json"].read_text()) for files in (wall, both))
    assert (of_wall["metadata"]["clock"], of_both["metadata"]["clock"]) == ("wall", "both")
    for part in (of_wall["total"], of_wall["functions"][0]["self"], of_wall["threads"][0]["total"]):
        assert {"cpu_ns", "cpu_samples"}.isdisjoint(part)
    assert "cpu_ns" not in of_wall["quality"]
    assert of_both["total"]["cpu_ns"] > 0
    # Samples are kept in whole microseconds.
    told = of_both["quality"]["cpu_ns"]
    assert told == pytest.approx(of_both["total"]["cpu_ns"], abs=10_000)
    assert "\nevents: Wall\n" in wall["x.callgrind"].read_text()
    assert "\nevents: Wall CPU\n" in both["x.callgrind"].read_text()
    costs = [line for line in wall["x.callgrind"].read_text().splitlines() if line[:1].isdigit()]
    assert {len(line.split()) for line in costs} == {2}
    assert '"cpuTime":false' in wall["x.html"].read_text()
    assert '"cpuSamples"' not in wall["x.html"].read_text().partition('"threads"')[2]
    refused = pystrobe.run("report", "--mode", "cpu", str(wall["x.strobe"]))
    assert refused.code != 0
    assert "have no CPU time" in refused.err
    assert "without --clock wall" in refused.err
    assert pystrobe.succeed("report", "--mode", "cpu", str(both["x.strobe"])).out


def test_a_clock_that_is_not_that_of_the_kernel_is_told() -> None:
    code = "import pystrobe\nwith pystrobe.Tracer() as t: pass\nprint(t.cpu_clock, t.profile())"
    tunables = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}

    def said(variables: dict[str, str]) -> str:
        environment = {**os.environ, **variables}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return " ".join(done.stdout.split())

    without = said(tunables)
    assert without.startswith("sampled ")
    assert "CPU time read every 50 us at most: there is no rseq" in without
    if (rest := said({})).startswith("rseq "):
        assert "50 us" not in rest


@pytest.mark.parametrize("value", ["'fast'", "None", "''"])
def test_bad_clocks_are_refused(value: str) -> None:
    code = f"import pystrobe\ntry: pystrobe.Tracer(clock={value})\nexcept ValueError as e: print(e)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"no such clock: {value}" in said.stdout
    assert "one of both, wall, cpu" in said.stdout
