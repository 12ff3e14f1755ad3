# SPDX-License-Identifier: Apache-2.0
"""What GPUs there are, and what pystrobe.gpu does where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from on_mock_gpu import MOCK, run, start

pytestmark = pytest.mark.beside_others


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


def test_a_star_import_leaves_range_alone() -> None:
    assert run("from pystrobe.gpu import *\nprint(list(range(2)))", driver=False) == "[0, 1]"
