# SPDX-License-Identifier: Apache-2.0
"""pystrobe.gpu.benchmark, and times as all of pystrobe.gpu prints them."""

from __future__ import annotations

import json

import pytest
from on_mock_gpu import run


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
