# SPDX-License-Identifier: Apache-2.0
"""pystrobe.gpu, with the mock driver of tests/mock_cuda, and where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MOCK = (
    Path(os.environ.get("PYSTROBE_BUILD", HERE.parents[1] / "build/release")).resolve()
    / "mock_cuda"
)


def start(program: str, driver: bool, environment: dict[str, str]) -> tuple[str, str]:
    """What ``program`` prints to stdout and stderr, in a process of its own."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    preamble = "import json, sys, time\nimport pystrobe\nfrom pystrobe import gpu\n"
    if driver:
        variables["LD_LIBRARY_PATH"] = str(MOCK)
        preamble += "import gpu_program as t\n"
    ended = subprocess.run(
        [sys.executable, "-c", preamble + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=variables,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip(), ended.stderr.strip()


def run(program: str, *, driver: bool = True, **environment: str) -> str:
    """What ``program`` prints in a process of its own; `t` is gpu_program there."""
    return start(program, driver, environment)[0]


def test_without_a_driver_it_says_so_and_raises_only_where_a_gpu_is_needed() -> None:
    said = run(
        """
        print(gpu.available(), gpu.devices())
        print(gpu.why_not())
        for needs_one in (
            lambda: gpu.timer().__enter__(),
            gpu.synchronize,
            lambda: gpu.measure(lambda: None),
            lambda: gpu.compare({"a": lambda: None}),
        ):
            try:
                needs_one()
            except pystrobe.GpuError as error:
                assert "there is no CUDA driver" in error.message, error
                assert "525" in error.hint
            else:
                raise AssertionError("it did not raise")
        print(gpu.benchmark("nap", lambda: time.sleep(0.02), num_trials=2))
        """,
        driver=False,
    ).splitlines()
    assert said[0] == "False []"
    assert said[1].startswith("there is no CUDA driver: libcuda.so.1")
    assert said[-1].startswith("nap: 2")
    assert "GPU" not in said[-1]


def test_devices_are_told_without_initialising_the_driver_here() -> None:
    said = run(
        """
        (device,) = gpu.devices()
        print(device.name, device.compute_capability, device.multiprocessors)
        print(f"{device.memory_bandwidth:.0f}")
        print(gpu.available(), gpu.why_not(), t.is_initialized())
        """
    ).splitlines()
    assert said == ["Mock GPU (9, 0) 4", "256000000000", "True None False"]


def test_a_driver_without_devices_tells_why() -> None:
    said = run("print(gpu.why_not()); print(gpu.available())", MOCK_CUDA_DEVICES="0").splitlines()
    assert "CUDA_ERROR_NO_DEVICE" in said[0]
    assert "CUDA_VISIBLE_DEVICES" in said[1]
    assert said[-1] == "False"


def test_a_timer_tells_what_the_stream_took_and_waits_for_nothing() -> None:
    said = json.loads(
        run(
            """
            t.begin()
            stream = t.make_stream()
            with gpu.timer("forward", stream=stream) as timer:
                t.launch(80_000, stream)
                t.launch(500_000)  # of another stream
            at_once = timer.seconds()
            begin = time.perf_counter()
            waited = timer.wait()
            took = time.perf_counter() - begin
            print(json.dumps([at_once, waited, timer.seconds(), took, timer.host_seconds]))
            """
        )
    )
    at_once, waited, later, took, host = said
    assert at_once is None
    assert 0.08 <= waited < 0.2
    assert later == waited
    assert 0.05 < took < 0.3
    assert host < 0.05


def test_while_one_thread_waits_the_others_run() -> None:
    said = run(
        """
        import threading
        t.begin()
        with gpu.timer() as timer:
            t.launch(300_000)
        counted = 0
        def count():
            global counted
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                counted += 1
                time.sleep(0.001)
        thread = threading.Thread(target=count)
        thread.start()
        timer.wait()
        gpu.synchronize()
        thread.join()
        print(counted > 50)
        """
    )
    assert said == "True"


def test_time_that_waits_for_the_device_has_a_name_of_its_own() -> None:
    said = run(
        """
        t.begin()
        with pystrobe.Profiler(mode="wall") as profiler:
            with gpu.timer() as timer:
                t.launch(300_000)
            timer.wait()
            t.launch(300_000)
            gpu.synchronize()
        stacks = profiler.profile.stacks(include_idle=True)
        waits = [s for s in stacks if s.frames[-2].function == "GPU wait"]
        callers = {s.frames[-1].function for s in waits}
        print(sorted(callers), sum(s.self.wall_ns for s in waits) > 400e6)
        """
    )
    assert said == "['Timer.wait', 'synchronize'] True"


def test_a_timer_is_read_after_its_end_only() -> None:
    said = run(
        """
        t.begin()
        timer = gpu.timer("early")
        for read in (timer.wait, lambda: timer.host_seconds):
            try:
                read()
            except pystrobe.Error as error:
                print(error.message)
        print(timer.seconds())
        """
    ).splitlines()
    assert said == ["the timer 'early' has not ended"] * 2 + ["None"]


def test_a_stream_that_is_destroyed_meanwhile_is_told() -> None:
    said = run(
        """
        t.begin()
        stream = t.make_stream()
        try:
            with gpu.timer(stream=stream) as timer:
                t.destroy(stream)
        except pystrobe.GpuError as error:
            print(error.message)
            print(error.hint)
        try:
            timer.wait()
        except pystrobe.GpuError as error:
            print(error.message)
        """
    ).splitlines()
    assert "CUDA_ERROR_INVALID_HANDLE" in said[0]
    assert "destroyed" in said[1]
    assert said[2] == said[0]


def test_what_the_block_raises_goes_first() -> None:
    said = run(
        """
        t.begin()
        stream = t.make_stream()
        try:
            with gpu.timer(stream=stream) as timer:
                t.destroy(stream)
                raise KeyError("mine")
        except KeyError as error:
            print(error)
        with gpu.timer() as timer:
            pass
        print(timer.wait() >= 0)
        """
    ).splitlines()
    assert said == ["'mine'", "True"]


@pytest.mark.parametrize(
    "stream",
    [
        "handle",
        "type('Torch', (), {'cuda_stream': handle})()",
        "type('CuPy', (), {'ptr': handle})()",
        "type('Numba', (), {'handle': ctypes.c_void_p(handle)})()",
        "type('Core', (), {'__cuda_stream__': lambda self: (0, handle)})()",
    ],
)
def test_streams_of_others_are_known(stream: str) -> None:
    said = run(
        f"""
        import ctypes
        t.begin()
        handle = t.make_stream()
        with gpu.timer(stream={stream}) as timer:
            t.launch(3_000, handle)
        print(0.003 <= timer.wait() < 0.03)
        """
    )
    assert said == "True"


def test_what_is_no_stream_is_refused() -> None:
    said = run(
        """
        t.begin()
        try:
            with gpu.timer(stream="mine"):
                pass
        except pystrobe.InvalidArgumentError as error:
            print(error.message)
        """
    )
    assert said == "no CUDA stream: 'mine'"


def test_the_stream_is_the_one_that_pytorch_uses_now() -> None:
    said = run(
        """
        import types
        t.begin()
        handle = t.make_stream()
        torch = types.ModuleType("torch")
        torch._C = types.SimpleNamespace()
        torch.cuda = types.SimpleNamespace(
            is_initialized=lambda: True,
            current_device=lambda: 3,
            current_stream=lambda: types.SimpleNamespace(cuda_stream=handle),
        )
        sys.modules["torch"] = torch
        def look():
            with gpu.timer() as timer:
                t.launch(3_000, handle)
            print(0.003 <= timer.wait() < 0.03)
        look()
        torch.cuda.current_stream = None
        torch._C._cuda_getCurrentRawStream = {3: handle}.get
        look()
        """
    )
    assert said == "True\nTrue"


def test_a_benchmark_tells_elapsed_time_and_the_devices() -> None:
    said = json.loads(
        run(
            """
            t.begin()
            calls = []
            def work():
                calls.append(1)
                t.launch(20_000)
            result = gpu.benchmark("work", work, num_warmups=2, num_trials=4)
            print(json.dumps([len(calls), result.wall_seconds, result.gpu_seconds,
                              result.mean, result.gpu_mean, str(result)]))
            """
        )
    )
    calls, wall, device, mean, gpu_mean, text = said
    assert calls == 6
    assert len(wall) == len(device) == 4
    assert all(0.02 <= g < w < 0.2 for g, w in zip(device, wall))
    assert mean == pytest.approx(sum(wall) / 4)
    assert gpu_mean == pytest.approx(sum(device) / 4)
    assert text.startswith("work: ")
    assert "of the GPU, mean of 4 trials" in text


def test_a_benchmark_of_another_devices_stream_waits_for_that() -> None:
    said = json.loads(
        run(
            """
            t.begin(device=1)
            stream = t.make_stream()
            t.begin(device=0)
            result = gpu.benchmark("there", lambda: t.launch(50_000, stream), stream=stream)
            print(json.dumps([result.mean, result.gpu_mean]))
            """,
            MOCK_CUDA_DEVICES="2",
        )
    )
    assert said[0] >= said[1] >= 0.05


def test_the_device_may_change_within_a_block() -> None:
    said = run(
        """
        t.begin(device=0)
        with gpu.timer() as timer:
            t.launch(3_000)
            t.begin(device=1)
        print(0.003 <= timer.wait() < 0.1)
        for _ in range(3):
            with gpu.timer() as other:
                t.launch(3_000)
            print(0.003 <= other.wait() < 0.1)
        """,
        MOCK_CUDA_DEVICES="2",
    )
    assert said.split() == ["True"] * 4


def test_measure_keeps_the_launch_out_of_the_devices_time() -> None:
    said = json.loads(
        run(
            """
            t.begin()
            def work():
                time.sleep(0.002)
                t.launch(50)
            result = gpu.measure(work, min_seconds=0)
            print(json.dumps([result.name, result.gpu.median, result.net, result.cpu.median,
                              result.gpu.count, result.stop, result.bound, str(result)]))
            """
        )
    )
    name, device, net, host, count, stop, bound, text = said
    assert name == "work"
    assert device == pytest.approx(50e-6 + 1.4e-6, abs=1e-7)  # the mock's gaps around a kernel
    assert net == pytest.approx(50e-6 - 0.6e-6, abs=1e-7)  # and its empty kernel
    assert host > 0.002
    assert (count, stop, bound) == (10, "quiet", "launch")
    assert "launch-bound: it takes 2" in text
    assert "less that: 49.4 us" in text


def test_work_that_changes_the_device_is_measured_where_it_began() -> None:
    said = run(
        """
        t.begin(device=0)
        stream = t.make_stream()
        def work():
            t.launch(50, stream)
            t.begin(device=1)
        result = gpu.measure(work, stream=stream, min_seconds=0)
        print(abs(result.gpu.median - 51.4e-6) < 1e-6)
        t.begin(device=0)
        calls = 0
        def wanders():
            global calls
            calls += 1
            t.begin(device=calls % 2)
        print(gpu.measure(wanders, min_seconds=0).gpu.median < 5e-6)
        """,
        MOCK_CUDA_DEVICES="2",
    )
    assert said.split() == ["True", "True"]


def test_measure_lets_go_of_work_that_waits_for_the_device() -> None:
    said = run(
        """
        t.begin()
        def work():
            t.launch(50)
            t.synchronize()
        try:
            gpu.measure(work, num_warmups=0, patience=0.2)
        except pystrobe.GpuError as error:
            print(error.message)
        result = gpu.measure(work, min_seconds=0, hold_back=False, time_cap=0.5)
        print(result.empty_seconds, result.net == result.gpu.median)
        """
    ).splitlines()
    assert "the work took more than 200 ms while its stream was held back" in said[0]
    assert said[1] == "None True"


def test_measure_passes_on_what_the_work_raises() -> None:
    said = run(
        """
        t.begin()
        def work():
            raise KeyError("mine")
        try:
            gpu.measure(work)
        except KeyError as error:
            print(error)
        calls = 0
        def later():
            global calls
            calls += 1
            t.launch(10)
            if calls == 5:
                raise KeyboardInterrupt
        try:
            gpu.measure(later)
        except KeyboardInterrupt:
            print("interrupted")
        t.synchronize()
        """
    ).splitlines()
    assert said == ["'mine'", "interrupted"]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("min_samples=0", "min_samples is 0"),
        ("max_noise=-1", "max_noise is -1"),
        ("patience=0", "patience is 0"),
        ("time_cap=float('nan')", "time_cap is nan"),
    ],
)
def test_measure_refuses_what_makes_no_sense(option: str, told: str) -> None:
    said = run(
        f"""
        try:
            gpu.measure(lambda: None, {option})
        except pystrobe.InvalidArgumentError as error:
            print(error.message)
        """
    )
    assert said == told


def test_compare_tells_which_differ() -> None:
    said = run(
        """
        t.begin()
        import random
        random.seed(3)
        def taking(microseconds):
            return lambda x: t.launch(microseconds + random.random() * x)
        result = gpu.compare(
            {"slow": taking(80), "fast": taking(40), "same": taking(40)},
            10, min_samples=40, min_seconds=0, max_noise=1,
        )
        print(result.fastest.name in ("fast", "same"))
        print([result.verdict(one) for one in result.measurements])
        print(result)
        """
    ).splitlines()
    assert said[0] == "True"
    slow, *others = eval(said[1])
    assert slow.startswith("x1.8") or slow.startswith("x1.9")
    assert sorted(others) == ["fastest", "no difference seen"]
    assert " ".join(said[2].split()) == "GPU time noise launch (CPU) samples against the fastest"
    assert len(said) == 6


def test_a_child_of_fork_is_told_why_it_cannot() -> None:
    said = run(
        """
        import os
        t.begin()
        with gpu.timer():
            t.launch(10)
        child = os.fork()
        if child == 0:
            try:
                with gpu.timer():
                    pass
            except pystrobe.GpuError as error:
                print(error.hint, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        """
    )
    assert 'the method "spawn" or "forkserver"' in said


def test_a_forked_child_is_not_stuck_where_other_threads_time(tmp_path: Path) -> None:
    said = run(
        """
        import os, signal, threading
        def tries():
            while True:
                try:
                    with gpu.timer():
                        pass
                except pystrobe.GpuError:
                    pass
        for _ in range(3):
            threading.Thread(target=tries, daemon=True).start()
        for _ in range(20):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                print(gpu.Timer().seconds(), flush=True)
                try:
                    gpu.synchronize()
                except pystrobe.GpuError:
                    pass
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print("all ended", flush=True)
        os._exit(0)
        """,
        driver=False,
    )
    assert said.endswith("all ended")


def test_importing_it_loads_no_library_of_a_gpus() -> None:
    said, _ = start(
        """
        print(*[line for line in open("/proc/self/maps") if "libcu" in line or "nvidia" in line])
        """,
        False,
        {"LD_LIBRARY_PATH": str(MOCK)},
    )
    assert said == ""


def test_a_program_that_is_taken_for_an_interpreter_is_not_begun_again_and_again() -> None:
    said = run(
        """
        import os
        sys.frozen = True
        print(gpu.available(), gpu.why_not())
        """
    )
    assert said.startswith("False there is no interpreter to ask the CUDA driver in")


def test_what_else_the_child_prints_does_no_harm(tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\necho "[1, 2]"\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho null\necho null >&2\n")
    liar.chmod(0o755)
    assert run(f"sys.executable = {str(interpreter)!r}; print(gpu.why_not())") == "None"
    said = run(f"sys.executable = {str(liar)!r}; print(gpu.why_not())")
    assert said == "the CUDA driver could not be asked in a child of its own: null"


def test_other_threads_that_are_busy_are_not_in_the_devices_time() -> None:
    said = json.loads(
        run(
            """
            import threading
            t.begin()
            t.launch(1)  # the kernel is found
            def spin():
                while True:
                    pass
            for _ in range(2):
                threading.Thread(target=spin, daemon=True).start()
            def look():
                with gpu.timer() as timer:
                    t.launch(50)
                return timer.wait()
            seconds = sorted(look() for _ in range(9))
            measured = gpu.measure(lambda: t.launch(50), min_seconds=0, time_cap=3)
            print(json.dumps([seconds[4], measured.cpu.median]), flush=True)
            import os
            os._exit(0)
            """
        )
    )
    # To have the lock again takes 5 ms and more. (ctypes lets go of it in each call.)
    assert said[0] < 0.1
    assert said[1] < 0.1


def test_ctrl_c_is_heard_though_the_work_is_a_function_of_c() -> None:
    said = run(
        """
        import os, signal, threading
        t.begin()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            gpu.measure(int, time_cap=60, min_seconds=60)
        except KeyboardInterrupt:
            print(time.monotonic() - begin < 20)
        """
    )
    assert said == "True"


def test_too_few_samples_have_no_verdict() -> None:
    said = run(
        """
        t.begin()
        both = {"slow": lambda: t.launch(900_000), "fast": lambda: t.launch(300_000)}
        result = gpu.compare(both, time_cap=0.5, num_warmups=0)
        print({result.verdict(one) for one in result.measurements})
        print(" - " in result.table())
        """
    )
    assert said.splitlines() == ["{'too few samples'}", "True"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (9.9996e-4, "1 ms"),
        (1.2345e-6, "1.23 us"),
        (5e-10, "0.5 ns"),
        (0.9999, "1 s"),
        (1234.5, "1234 s"),
        (0, "0 ns"),
    ],
)
def test_times_are_rounded_into_their_unit(seconds: float, text: str) -> None:
    from pystrobe.gpu._format import format_seconds

    assert format_seconds(seconds) == text


def test_a_star_import_leaves_range_alone() -> None:
    assert run("from pystrobe.gpu import *\nprint(list(range(2)))", driver=False) == "[0, 1]"


RANGES = """
with gpu.range("step"):
    with gpu.range("forward"):
        pass
    gpu.range_push("backward")
    gpu.range_pop()
try:
    with gpu.range("fails"):
        raise KeyError
except KeyError:
    pass

@gpu.range("decorated")
def function():
    return 7
assert function() == 7

try:
    gpu.range_pop()
except ValueError as error:
    print(error)
"""


def test_ranges_are_heard_by_a_tool() -> None:
    listener = MOCK / "libnvtx_listener.so"
    said, heard = start(RANGES, False, {"NVTX_INJECTION64_PATH": str(listener)})
    assert said == "this thread has no range to pop"
    assert heard.splitlines() == [
        "push pystrobe: step",
        "push pystrobe: forward",
        "pop pystrobe",
        "push pystrobe: backward",
        "pop pystrobe",
        "pop pystrobe",
        "push pystrobe: fails",
        "pop pystrobe",
        "push pystrobe: decorated",
        "pop pystrobe",
    ]


def test_ranges_need_no_tool_and_no_gpu() -> None:
    assert run(RANGES, driver=False) == "this thread has no range to pop"


def test_ranges_are_regions_in_our_own_recordings() -> None:
    said = run(
        """
        def spin():
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
        def pushes():
            gpu.range_push("pushed")
            spin()
            gpu.range_pop()
        with pystrobe.Profiler() as profiler:
            with gpu.range("step"):
                spin()
            pushes()
        names = {f.function for s in profiler.profile.stacks() for f in s.frames}
        print(sorted(n for n in names if "step" in n or "pushed" in n))
        """,
        driver=False,
    )
    assert "step" in said
    assert "pushed" in said
