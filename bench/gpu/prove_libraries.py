#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other libraries than PyTorch, CUDA 12's CUPTI, and the command line. prove_libraries.py
OUT_DIRECTORY [LIBCUPTI.SO.12]. See run_on_device.sh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from proving import check, prove_all

results: dict[str, Any] = {}
HERE = str(Path(__file__).parent)
BEGIN = """
import json, sys
import pystrobe
from pystrobe import gpu

def tell(profiler, timer=None):
    found = profiler.profile.gpu
    print(json.dumps({
        "launches": found.quality.kernel_launches,
        "records": found.quality.records,
        "unmatched": found.quality.unmatched,
        "line": found.quality.line,
        "works": [[w.short_name, w.count, [f.function for f in w.frames]] for w in found.sums],
        "timer": None if timer is None else timer.wait(),
    }))
"""
CUPY = """
import cupy
x = cupy.ones(1 << 20)
x + x, x * x
stream = cupy.cuda.Stream(non_blocking=True)
def adds():
    for _ in range(100):
        x + x
def aside():
    with stream, gpu.timer("aside") as timer:
        x * x
    return timer
with pystrobe.Profiler(mode="gpu") as profiler:
    adds()
    timer = aside()
tell(profiler, timer)
"""
NUMBA = """
import numpy
numpy.row_stack = getattr(numpy, "row_stack", numpy.vstack)     # NumPy 2.5 has it no more
from numba import cuda
@cuda.jit
def double(values):
    at = cuda.grid(1)
    if at < values.size:
        values[at] *= 2
values = cuda.to_device(numpy.ones(1 << 20, dtype=numpy.float32))
double[4096, 256](values)
def doubles():
    for _ in range(100):
        double[4096, 256](values)
with pystrobe.Profiler(mode="gpu") as profiler:
    doubles()
    stream = cuda.stream()
    with gpu.timer("aside", stream=stream) as timer:
        double[4096, 256, stream](values)
tell(profiler, timer)
"""
JAX = """
import jax, jax.numpy as jnp
double = jax.jit(lambda x: jnp.sin(x) * 2)
x = jnp.ones(1 << 20)
double(x).block_until_ready()
def doubles():
    for _ in range(100):
        double(x).block_until_ready()
with pystrobe.Profiler(mode="gpu") as profiler:
    doubles()
tell(profiler)
"""
LIBRARIES = {"CuPy": (CUPY, "adds"), "Numba": (NUMBA, "doubles"), "JAX": (JAX, "doubles")}
OLDER = """
import ctypes
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
import helper
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def launches():
    helper.launch(helper.NOTHING, "nothing", 1000, cupti=sys.argv[1])
for _ in range(2):      # it is left, and used again
    with pystrobe.Profiler(mode="gpu") as profiler:
        launches()
tell(profiler)
"""
SCRIPT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU()).cuda()
def step():
    with torch.cuda.nvtx.range("step"):
        model(torch.randn(256, 1024, device="cuda")).sum().backward()
def train():
    for _ in range(50):
        step()
    torch.cuda.synchronize()
train()
"""


def answer_of(program: str, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    environment["PYTHONPATH"] = os.pathsep.join([HERE, environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", BEGIN + program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    if ended.returncode != 0:
        raise RuntimeError("\n".join(ended.stderr.splitlines()[-5:]))
    answer: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return answer


def prove_libraries() -> None:
    for name, (program, function) in LIBRARIES.items():
        try:
            found = answer_of(program)
        except (RuntimeError, subprocess.TimeoutExpired) as failure:
            check(f"{name}: runs", False, failure)
            continue
        results[name] = found
        kernels = sum(count for _, count, path in found["works"] if function in path)
        check(f"{name}: 100 calls have their kernels", kernels >= 100, found["works"])
        whole = found["records"] > 0 and found["unmatched"] == 0
        check(f"{name}: nothing is missing", whole, found["line"])
        if found["timer"] is not None:
            check(f"{name}: a timer on its stream", 0 < found["timer"] < 1e-2, found["timer"])


def prove_an_older_cupti() -> None:
    if len(sys.argv) < 3:
        print("no CUPTI of CUDA 12 was given")
        return
    found = answer_of(OLDER, sys.argv[2])
    results["CUDA 12"] = found
    counts = (found["launches"], found["records"], found["unmatched"])
    check("CUDA 12's CUPTI: all of a thousand launches", counts == (1000, 1000, 0), counts)
    check("told by it", "CUPTI of CUDA 12" in found["line"], found["line"])


def prove_the_command_line() -> None:
    with TemporaryDirectory() as directory:
        script = Path(directory) / "train.py"
        script.write_text(SCRIPT)

        def pystrobe(*words: str) -> str:
            command = [sys.executable, "-m", "pystrobe", *words]
            ended = subprocess.run(
                command, cwd=directory, capture_output=True, text=True, timeout=120
            )
            if ended.returncode != 0:
                raise RuntimeError(f"{words}: {ended.stderr}")
            return ended.stdout + ended.stderr

        ran = pystrobe("run", "--gpu", "-o", "run.strobe", "-o", "run.html", "train.py")
        told = pystrobe("report", "run.strobe", "--gpu")
        for words in (
            "step",
            "<autograd thread>",
            "Linear.forward",
            "Quality of the GPU's figures: good",
        ):
            check(f"run --gpu, report --gpu: {words}", words in told, len(told))
        print(told)
        pystrobe("trace", "--gpu", "-o", "trace.strobe", "train.py")
        traced = pystrobe("report", "trace.strobe", "--gpu")
        good = "Quality of the GPU's figures: good" in traced
        check("trace --gpu", good, traced.splitlines()[-3:])
        pystrobe("run", "--gpu-launches", "-o", "launches.strobe", "train.py")
        counted = pystrobe("report", "launches.strobe", "--gpu")
        check("run --gpu-launches", "sets launched" in counted, counted.splitlines()[:3])
        results["command line"] = {"run": ran[-2000:], "report": told}


def main() -> int:
    proofs = (prove_the_command_line, prove_libraries, prove_an_older_cupti)
    return prove_all(proofs, results, Path(sys.argv[1]) / "libraries.json")


if __name__ == "__main__":
    sys.exit(main())
