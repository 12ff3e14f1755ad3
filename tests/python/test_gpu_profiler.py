# SPDX-License-Identifier: Apache-2.0
"""Profiler(gpu=True): kernels and the Python calls that launched them, with the mocks of the driver
and of CUPTI."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest
from gpu_traced import PREAMBLE, traced
from on_mock_gpu import HERE, MOCK, run, start
from own_interpreters import Own
from pystrobe import read as pystrobe_read
from pystrobe_command import Pystrobe

pytestmark = pytest.mark.beside_others


def test_every_launch_is_charged_to_its_path(own: Own) -> None:
    found = traced(
        """
        def generated():
            for _ in range(3):
                leaf()
                yield
        class Made:
            def __init__(self):
                leaf()
        with pystrobe.Profiler(mode="gpu") as profiler:
            many(100)
            list(generated())
            Made()
            leaf(20)
            [leaf() for _ in "ab"]
        print(json.dumps([works(profiler.profile), profiler.profile.gpu.quality.__dict__]))
        """,
        own,
    )
    paths, quality = found
    kernels = {(tuple(path[1:-1]), kernel): (count, ns) for path, kernel, count, ns in paths}
    assert kernels[("many", "leaf"), "sleep_5000"] == (100, 500_000)
    assert kernels[("generated", "leaf"), "sleep_5000"] == (3, 15_000)
    assert kernels[("leaf",), "sleep_20000"] == (1, 20_000)
    made = [path for path in kernels if path[0][0].endswith("__init__")]
    assert len(made) == 1
    assert all(path[0] == "<module>" and path[-1] == "launch" for path, *_ in paths)
    assert quality["kernel_launches"] == quality["records"] == 107
    assert quality["unmatched"] == quality["dropped"] == quality["failed"] == 0
    assert "CUPTI 13.0" in quality["source"]


def test_threads_have_paths_of_their_own_and_lines_tell_launches_apart(own: Own) -> None:
    found = traced(
        """
        def work():
            t.begin()
            leaf()
            leaf()
        with pystrobe.Profiler(mode="gpu") as profiler:
            threads = [threading.Thread(target=work) for _ in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        sums = profiler.profile.gpu.sums
        print(json.dumps([[w.frames[-3].function, w.frames[-3].line, w.count] for w in sums]))
        """,
        own,
    )
    assert [(function, count) for function, _, count in found] == [("work", 4), ("work", 4)]
    first, second = (line for _, line, _ in found)
    assert second == first + 1


def test_code_that_comes_and_goes_is_not_mistaken(own: Own) -> None:
    """Functions made one after the other, most at the address of the one before."""
    found = traced(
        """
        import gc
        addresses = set()
        with pystrobe.Profiler(mode="gpu") as profiler:
            for i in range(200):
                names = {"t": t}
                exec(f"def own_{i}():\\n    t.launch(5)\\nown_{i}()", names)
                addresses.add(id(names[f"own_{i}"].__code__))
                del names
                gc.collect()
        names = [w.frames[-2].function for w in profiler.profile.gpu.sums]
        print(json.dumps([names, len(addresses)]))
        """,
        own,
    )
    names, addresses = found
    assert addresses < 100, "the addresses were used again"
    assert sorted(names) == sorted(f"own_{i}" for i in range(200))


def test_what_a_graph_does_has_the_paths_of_its_launch_and_of_its_capture(own: Own) -> None:
    found = traced(
        """
        def forward():
            return t.capture(3)
        def record():
            return t.instantiate(forward(), 3)
        def replay(graph):
            t.launch_graph(graph, 3)
        before = record()
        with pystrobe.Profiler(mode="gpu") as profiler:
            graph = record()
            for _ in range(5):
                replay(graph)
            replay(before)
        print(json.dumps([works(profiler.profile), profiler.profile.gpu.quality.__dict__]))
        """,
        own,
    )
    paths, quality = found
    kernels = {tuple(path): count for path, _, count, _ in paths}
    launch = ("<module>", "replay", "launch_graph", "<CUDA graph>")
    assert kernels == {
        (*launch, "<module>", "record", "forward", "capture"): 15,
        launch: 3,  # captured before
    }
    assert quality["kernel_launches"] == quality["captured"] == 3
    assert quality["graph_launches"] == 6
    assert quality["records"] == quality["of_graphs"] == 18
    assert "; nothing is missing" in quality["line"]


def test_what_the_program_did_while_the_device_idled_is_told(own: Own) -> None:
    found = traced(
        """
        def asks():
            t.launch(2000)
            t.synchronize()
            time.sleep(0.004)
        def loads():
            time.sleep(0.02)
        with pystrobe.Profiler(mode="gpu") as profiler:
            asks()
            t.launch(2000)
            loads()
            t.launch(2000)
        gpu = profiler.profile.gpu
        def name(frames):
            return [frame.function for frame in frames]
        idles = [[i.cause, name(i.from_frames), name(i.to_frames), i.total_ns] for i in gpu.idles]
        waits = [[name(wait.frames), wait.count, wait.total_ns] for wait in gpu.waits]
        lines = [[i.from_frames[0].line, i.to_frames[0].line] for i in gpu.idles if i.from_frames]
        print(json.dumps([idles, waits, lines, [use.__dict__ for use in gpu.uses]]))
        """,
        own,
    )
    idles, waits, lines, (use,) = found
    hosts = {tuple(before): (after, ns) for cause, before, after, ns in idles if cause == "host"}
    launch = ["<module>", "launch"]
    after_wait, after_launch = ("<module>", "asks", "synchronize"), ("<module>", "launch")
    assert [one[1:3] for one in idles if one[0] == "wait"] == [[list(after_wait), launch]]
    assert hosts[after_wait][0] == hosts[after_launch][0] == launch
    assert hosts[after_wait][1] >= 3_900_000
    assert hosts[after_launch][1] >= 17_000_000
    (wait,) = waits
    assert wait[:2] == [["<module>", "asks", "synchronize"], 1]
    assert wait[2] >= 1_000_000
    spread = [after - before for before, after in lines]
    assert sorted(spread) == [1, 1, 2], "lines of the program between which it idled"
    assert use["device"] == 0
    assert use["busy_ns"] == 6_000_000
    assert use["idle_ns"] == sum(ns for _, _, _, ns in idles)


def test_a_region_stands_in_the_path(own: Own) -> None:
    found = traced(
        """
        def step():
            leaf()
            with pystrobe.region("forward"):
                leaf()
        with pystrobe.Profiler(mode="gpu") as profiler:
            for _ in range(10):
                step()
        print(json.dumps(works(profiler.profile)))
        """,
        own,
    )
    paths = sorted((tuple(path[1:-1]), count) for path, _, count, _ in found)
    assert paths == [(("forward", "step", "leaf"), 10), (("step", "leaf"), 10)]


@pytest.mark.alone
def test_cpu_time_and_the_gpus_are_in_one_recording() -> None:
    found = traced(
        """
        def spin():
            begin = time.thread_time()
            while time.thread_time() - begin < 0.2:
                pass
        with pystrobe.Profiler(gpu=True) as profiler:
            spin()
            many(50)
        profile = profiler.profile
        cpu = profile.report(mode="cpu")
        gpu_ns = {f.name: f.total.gpu_ns for f in profile.report(mode="gpu").functions}
        rows = {row.key.split(" ")[0]: row for row in profiler.key_averages()}
        averages = {
            name: [row.count, row.self_cpu_time_total, row.self_cuda_time_total,
                   row.cuda_time_total]
            for name, row in rows.items()
        }
        print(json.dumps([{f.name: f.self.cpu_ns for f in cpu.functions}, gpu_ns, averages]))
        """
    )
    cpu, gpu, averages = found
    assert 150e6 < cpu["spin"] < 250e6
    assert "sleep_5000" not in cpu
    assert gpu["many"] == gpu["leaf"] == gpu["launch"] == gpu["sleep_5000"] == 250_000
    assert averages["sleep_5000"] == [50, 0.0, 250.0, 250.0]
    assert averages["launch"][2:] == [250.0, 250.0]
    assert averages["many"][2:] == [0.0, 250.0]
    assert averages["spin"][1] == pytest.approx(200_000, rel=0.25)
    assert averages["spin"][0] is None


def test_a_schedule_that_records_nothing_says_so() -> None:
    said = run(
        PREAMBLE
        + textwrap.dedent(
            """
            with pystrobe.Profiler(mode="gpu", schedule=gpu.schedule(wait=5, active=1)) as p:
                p.step()
            try:
                p.profile
            except pystrobe.Error as error:
                print(error)
            """
        )
    )
    assert "recorded nothing until step 1" in said


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("gpu.schedule(active=0)", "active is 0"),
        ("gpu.schedule(active=1, wait=-1)", "wait is -1"),
        ("pystrobe.Profiler(mode='gpu', rate=100)", "the rate is 100"),
        ("pystrobe.Profiler(timeline=True)", "timeline=True without a GPU"),
        ("pystrobe.Profiler(mode='gpu', native=True)", "native=True with mode='gpu'"),
        ("pystrobe.Profiler(gpu=True).step()", "has no schedule"),
    ],
)
def test_what_makes_no_sense_is_refused(call: str, words: str) -> None:
    said = run(
        f"""
        try:
            {call}
        except pystrobe.Error as error:
            print(error)
        """,
        driver=False,
    )
    assert words in said


def test_where_another_profiler_has_cupti_the_rest_is_sampled() -> None:
    said, warned = start(
        PREAMBLE
        + textwrap.dedent(
            """
            import ctypes
            ctypes.CDLL("libcupti.so.13").mock_cupti_hold(1)
            with pystrobe.Profiler(gpu=True) as profiler:
                many(3)
            print(profiler.profile.gpu)
            try:
                pystrobe.Profiler(mode="gpu").start()
            except pystrobe.GpuError as error:
                print(error)
            """
        ),
        True,
        {},
    )
    assert said.splitlines()[0] == "None"
    assert "Another profiler has CUPTI" in said
    assert "RuntimeWarning: the GPU is not profiled" in warned
    assert "Another profiler has CUPTI" in warned


def test_without_a_gpu_the_rest_is_sampled() -> None:
    said, warned = start(
        """
        with pystrobe.Profiler(gpu=True) as profiler:
            sum(range(100_000))
        print(profiler.profile.gpu)
        """,
        False,
        {},
    )
    assert said == "None"
    assert "there is no CUDA driver" in warned


def test_a_second_trace_is_refused_and_leaves_the_first_alone() -> None:
    found = traced(
        """
        with pystrobe.Profiler(mode="gpu") as profiler:
            many(10)
            compared = gpu.compare({"leaf": leaf}, max_noise=1, min_seconds=0)
            try:
                pystrobe._core.GpuTrace([], 0, True)
            except pystrobe.GpuError as error:
                refused = error.message
            many(5)
        counts = [count for path, _, count, _ in works(profiler.profile) if "many" in path]
        print(json.dumps([compared.works, refused, counts]))
        """
    )
    assert found == [None, "this process traces its GPU work already", [10, 5]]


def test_one_profiler_after_the_other() -> None:
    found = traced(
        """
        counts = []
        for i in range(5):
            with pystrobe.Profiler(mode="gpu") as profiler:
                many(10 + i)
            counts.append(profiler.profile.gpu.quality.records)
            many(3)
        print(json.dumps(counts))
        """
    )
    assert found == [10, 11, 12, 13, 14]


def test_a_child_made_by_fork_goes_on(own: Own) -> None:
    found = traced(
        """
        import gc, os
        with pystrobe.Profiler(mode="gpu") as profiler:
            many(5)
            child = os.fork()
            if child == 0:
                exec("def made(): pass\\nmade()", {})
                gc.collect()
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            many(5)
        print(json.dumps([status, profiler.profile.gpu.quality.records]))
        """,
        own,
    )
    assert found == [0, 10]


AUTOGRAD = """
class Engine:
    def run_backward(self, count):
        t.launch_without_frames(count)

class Variable:
    _execution_engine = Engine()

class Torch:
    class autograd:
        Variable = Variable

sys.modules["torch"] = Torch
engine = Variable._execution_engine

def backward(count):
    return Variable._execution_engine.run_backward(count)
"""


def test_what_autograds_threads_launch_is_charged_to_who_waits_for_them(own: Own) -> None:
    found = traced(
        AUTOGRAD
        + textwrap.dedent(
            """
            with pystrobe.Profiler(mode="gpu") as profiler:
                is_watched = Variable._execution_engine is not engine
                backward(7)
                t.launch_without_frames(2)
            restored = Variable._execution_engine is engine
            print(json.dumps([is_watched, restored, works(profiler.profile)]))
            """
        ),
        own,
    )
    is_watched, restored, sums = found
    assert is_watched
    assert restored
    counts = {tuple(path): count for path, _, count, _ in sums}
    assert counts.pop(()) == 2, "nobody waited for these"
    assert counts == {("<module>", "backward", "<autograd thread>"): 7}


def test_where_two_wait_for_autograd_neither_is_charged() -> None:
    found = traced(
        AUTOGRAD
        + textwrap.dedent(
            """
            def enter():
                return pystrobe._core.gpu_enter_backward()

            with pystrobe.Profiler(mode="gpu") as profiler:
                path = enter()
                backward(7)
                pystrobe._core.gpu_leave_backward(path)
                backward(1)
            print(json.dumps(works(profiler.profile)))
            """
        )
    )
    counts = {bool(path): count for path, _, count, _ in found}
    assert counts == {False: 7, True: 1}


SCRIPT = """
import gpu_program as t

def work():
    for _ in range(50):
        t.launch(20)

t.begin()
work()
"""


@pytest.mark.parametrize("verb", ["run", "trace"])
def test_a_script_is_profiled_as_it_is(verb: str, pystrobe: Pystrobe, tmp_path: Path) -> None:
    script, recording, trace = (tmp_path / name for name in ("a.py", "a.strobe", "a.trace.json"))
    script.write_text(SCRIPT)
    variables = {**os.environ, "PYTHONPATH": str(HERE), "LD_LIBRARY_PATH": str(MOCK)}
    arguments = ("--gpu", "--python", sys.executable, "-o", str(recording), "-o", str(trace))
    done = pystrobe.succeed(verb, *arguments, str(script), env=variables)
    assert "What GPUs did: 1.00 ms in 50 kernels" in done.err
    assert "50 works recorded, of 50 launches" in done.err
    report = pystrobe_read(str(recording), mode="gpu")
    assert {f.name: f.total.gpu_ns for f in report.functions}["work"] == 1_000_000
    kernels = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "kernel"]
    assert [event["dur"] for event in kernels] == [20.0] * 50


def test_stacks_are_exported_in_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    refused = traced(
        f"""
        with pystrobe.Profiler(mode="gpu") as profiler:
            many(10)
            leaf(200)
        profiler.export_stacks({str(path)!r})
        try:
            profiler.profile.save({str(path)!r}, format="collapsed", unit="ms")
        except pystrobe.InvalidArgumentError as error:
            print(json.dumps(str(error)))
        """
    )
    assert "no such unit: 'ms'" in refused
    times = sorted(float(line.rsplit(" ", 1)[1]) for line in path.read_text().splitlines())
    assert times == [50, 200]


def test_a_script_is_sampled_all_the_same_without_a_gpu(pystrobe: Pystrobe, tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("sum(range(3_000_000))")
    done = pystrobe.succeed("run", "--gpu", "--python", sys.executable, str(script))
    assert done.err.startswith("pystrobe: the GPU is not profiled: there is no CUDA driver")
    assert "Quality:" in done.err


def test_a_recording_tells_why_it_has_no_gpu(pystrobe: Pystrobe, tmp_path: Path) -> None:
    script, file = tmp_path / "a.py", tmp_path / "a.strobe"
    script.write_text("sum(range(3_000_000))")
    why = "there is no CUDA driver"
    for verb in ("run", "trace"):
        options = ("--gpu", "--force", "--python", sys.executable, "-o", str(file), str(script))
        pystrobe.succeed(verb, *options)
        report = pystrobe.succeed("report", str(file))
        assert f"what a GPU did is not in it: {why}" in " ".join(report.out.split())
        assert why in pystrobe.run("report", str(file), "--gpu").err
        assert pystrobe_read(file).metadata.gpu_failure.startswith(why)
        converted = tmp_path / f"{verb}.json"
        pystrobe.succeed("report", str(file), "-o", str(converted))
        assert why in json.loads(converted.read_text())["metadata"]["gpu_failure"]
    options = ("--gpu", "--python", sys.executable, "-o", "x.trace.json", str(script))
    done = pystrobe.run("run", *options, cwd=tmp_path)
    assert f"each work of a GPU was done, and there was none to see: {why}" in done.err
    assert "Record it again where there is a GPU." in done.err


@pytest.mark.parametrize("mode", ["cpu", "gpu", "trace"])
def test_what_is_kept_nowhere_is_shown_whole(mode: str) -> None:
    settings = {"PYSTROBE_ENABLE": f"gpu=1,mode={mode}"}
    _, said = start("import pystrobe.auto\n" + PREAMBLE + "many(100)", True, settings)
    assert said.count("What GPUs did: 500 us in 100 kernels") == 1
    assert ("Quality:" in said) == (mode != "gpu")
    assert "print(mode" not in said
