# SPDX-License-Identifier: Apache-2.0
"""pystrobe.gpu.measure and compare."""

from __future__ import annotations

import json
from typing import Any

import pystrobe
import pytest
from on_mock_gpu import run
from pystrobe import gpu


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


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("measure(3)", "what to measure is 3"),
        ("benchmark('it', 3)", "what to run is 3"),
        ("compare([len])", "what to compare is [<built-in function len>]"),
        ("compare({})", "what to compare is {}"),
        ("compare({'a': len, 'b': None})", "b is None"),
        ("compare({5: len})", "a function's name is 5"),
        ("measure(len, max_noise='x')", "max_noise is 'x'"),
        ("measure(len, hold_back=None)", "hold_back is None"),
        ("compare({'a': len}, patience='long')", "patience is 'long'"),
    ],
)
def test_what_cannot_be_is_refused(call: str, told: str) -> None:
    with pytest.raises(pystrobe.InvalidArgumentError) as refused:
        eval(f"gpu.{call}", {"gpu": gpu})
    assert refused.value.message == told


def test_an_option_that_there_is_not_is_told_by_the_function_that_got_it() -> None:
    with pytest.raises(TypeError, match=r"measure\(\) got an unexpected keyword argument 'trials'"):
        gpu.measure(len, trials=3)


def test_each_option_reaches_the_core() -> None:
    from pystrobe.gpu._measure import MeasureOptions

    given: dict[str, Any] = {
        "num_warmups": 3,
        "flush_l2": False,
        "hold_back": True,
        "min_samples": 7,
        "min_seconds": 0.5,
        "max_noise": 0.25,
        "time_cap": 5.0,
        "low_clock": 0.125,
    }
    options = MeasureOptions(**given).to_core()
    assert {name: getattr(options, name) for name in given} == given


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
    head = "GPU time noise launch (CPU) launches samples against the fastest"
    assert " ".join(said[2].split()) == head
    assert [line.split(":")[0] for line in said[6:]] == ["slow", "fast", "same"]
    assert said[6].startswith("slow: sleep_8")


def test_compare_tells_what_is_behind_each() -> None:
    said = run(
        """
        t.begin()
        three = lambda: [t.launch(5) for _ in range(3)]
        both = {"three": three, "two": lambda: (t.launch(7), t.launch(9))}
        result = gpu.compare(both, max_noise=1)
        print([dict(works) for works in result.works])
        print(result)
        import ctypes
        ctypes.CDLL("libcupti.so.13").mock_cupti_hold(1)
        result = gpu.compare(both, max_noise=1)
        print(result.works, [" - " in row for row in str(result).splitlines()[1:]])
        """
    ).splitlines()
    assert said[0] == "[{'sleep_5000': 3}, {'sleep_9000': 1, 'sleep_7000': 1}]"
    assert said[-3:-1] == ["three: 3 x sleep_5000", "two: sleep_9000, sleep_7000"]
    assert said[-1] == "None [True, True]"


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
