#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pystrobe.gpu beside what else tells a GPU's time: events by hand, triton's do_bench, and CUPTI's
own records by way of torch.profiler. See run_on_device.sh."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from timeit import timeit
from typing import Any

import pystrobe
import torch
import triton
import triton.language as tl
from proving import check, prove_all
from pystrobe import gpu
from pystrobe.gpu._stream import handle_of
from triton.testing import do_bench

US = 1e-6
results: dict[str, Any] = {}


def recorded(work: Callable[[], object], times: int = 50) -> float:
    """Median duration by CUPTI's records, in seconds."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(5):
        work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(times):
            work()
        torch.cuda.synchronize()
    durations = [
        event.device_time * US
        for event in profiler.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    assert len(durations) == times, f"{len(durations)} records of {times} launches"
    return float(statistics.median(durations))


def events_by_hand(work: Callable[[], object], trials: int) -> list[float]:
    seconds = []
    for _ in range(trials):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return seconds


def prove_devices() -> None:
    (device, *_) = gpu.devices()
    check("devices() initialises nothing here", not torch.cuda.is_initialized(), gpu.why_not())
    child = os.fork()
    if child == 0:
        ok = torch.zeros(1, device="cuda").item() == 0
        os._exit(0 if ok else 1)
    status = os.waitpid(child, 0)[1]
    check("a child of fork() can use CUDA after it", status == 0, status)
    check("torch agrees on the name", device.name == torch.cuda.get_device_name(0), device.name)
    results["device"] = {
        "name": device.name,
        "driver": pystrobe._core.gpu_driver_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "pystrobe": pystrobe.__version__,
    }


def prove_measure() -> None:
    """Short kernels, whose length CUPTI tells too. Both less an empty kernel."""
    spin = torch.cuda._sleep
    rows = []
    empty_record = recorded(lambda: spin(0))
    for cycles in (2_000, 8_000, 10_000, 20_000, 100_000):
        work = lambda cycles=cycles: spin(cycles)  # noqa: E731
        zero = gpu.measure(lambda: spin(0), flush_l2=False, name="spin 0")
        measured = gpu.measure(work, flush_l2=False, name=f"spin {cycles}")
        record = recorded(work)
        ours = measured.gpu.median - zero.gpu.median
        theirs = record - empty_record
        rows.append(
            {
                "cycles": cycles,
                "net_us": ours / US,
                "record_us": record / US,
                "record_net_us": theirs / US,
                "interval_us": measured.gpu.median / US,
                "noise": measured.gpu.noise,
                "iqr_us": measured.gpu.iqr / US,
                "by_hand_us": statistics.median(events_by_hand(work, 200)) / US,
                "do_bench_us": do_bench(work, return_mode="median") * 1e3,
                "samples": measured.gpu.count,
                "empty_us": (measured.empty_seconds or 0) / US,
                "clock_hz": measured.clock_hz,
            }
        )
        check(
            f"{cycles} cycles: less an empty kernel within 0.3 us of CUPTI's record, less one",
            abs(ours - theirs) < 0.3 * US,
            f"{ours / US:.2f} and {theirs / US:.2f} us",
        )
        if cycles >= 8_000:
            check(
                f"{cycles} cycles: noise below 2 %", measured.gpu.noise < 0.02, measured.gpu.noise
            )
    results["short kernels"] = rows


def prove_benchmark() -> None:
    x = torch.randn(1 << 28, device="cuda")
    work = lambda: x.mul_(1.0)  # noqa: E731
    ours, theirs = [], []
    for _ in range(7):
        found = gpu.benchmark("scale 1 GiB", work, num_warmups=2, num_trials=20)
        ours.append(found.gpu_mean or 0.0)
        events_by_hand(work, 2)
        theirs.append(statistics.mean(events_by_hand(work, 20)))
    print(found)
    ratio = statistics.median(ours) / statistics.median(theirs)
    check("benchmark() within 1 % of events by hand", abs(ratio - 1) < 0.01, f"{ratio:.4f}")
    results["benchmark"] = {"ratio": ratio, "ours": ours, "by hand": theirs}


def prove_compare() -> None:
    x = torch.randn(4096, 4096, device="cuda")
    compared = gpu.compare(
        {"torch.square(a)": torch.square, "a * a": lambda a: a * a, "a ** 2": lambda a: a**2}, x
    )
    print(compared)
    results["square"] = str(compared)
    works = [list(one.values()) for one in compared.works or ()]
    check("CUPTI tells the kernel behind each", works == [[1], [1], [1]], compared.works)
    cubes = gpu.compare({"a * a": lambda a: a * a, "a ** 3": lambda a: a**3, "sin": torch.sin}, x)
    print(cubes)
    results["others"] = str(cubes)
    small = torch.randn(16, device="cuda")
    measured = gpu.measure(lambda: small + small, name="a small add")
    print(measured)
    check("a small add is launch-bound", measured.bound == "launch", measured.verdict)


def prove_bandwidth() -> None:
    (device, *_) = gpu.devices()
    source = torch.empty(1 << 30, device="cuda", dtype=torch.float32)
    to = torch.empty_like(source)
    copied = gpu.measure(lambda: to.copy_(source), name="copy 4 GiB", min_samples=20)
    rate = 2 * source.numel() * 4 / copied.gpu.median
    check(
        "copying reaches 80 % of the bandwidth that the driver's figures give, and no more than it",
        0.8 < rate / device.memory_bandwidth <= 1,
        f"{rate / 1e12:.2f} of {device.memory_bandwidth / 1e12:.2f} TB/s",
    )
    results["copy TB/s"] = [rate / 1e12, device.memory_bandwidth / 1e12]


def prove_matmul() -> None:
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    multiplied = gpu.measure(lambda: a @ b, name="matmul", min_samples=20)
    flops = 2 * n**3 / multiplied.gpu.median
    print(f"matmul: {flops / 1e12:.0f} TFLOP/s, {multiplied.throttled} samples left out")
    results["matmul"] = {
        "TFLOP/s": flops / 1e12,
        "samples left out": multiplied.throttled,
        "clock MHz": (multiplied.clock_hz or 0) / 1e6,
    }


# Triton reads the annotations: what has none is a value of the launch.
@triton.jit  # type: ignore[untyped-decorator]
def softmax_kernel(  # type: ignore[no-untyped-def]
    to, source, stride, n: tl.constexpr, block: tl.constexpr
) -> None:
    row = tl.program_id(0)
    columns = tl.arange(0, block)
    values = tl.load(source + row * stride + columns, mask=columns < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(to + row * stride + columns, powers / tl.sum(powers, axis=0), mask=columns < n)


def prove_triton() -> None:
    x = torch.randn(4096, 2048, device="cuda")
    y = torch.empty_like(x)

    def softmax(x: torch.Tensor) -> torch.Tensor:
        softmax_kernel[(x.shape[0],)](y, x, x.stride(0), x.shape[1], 2048, num_warps=8)
        return y

    assert torch.allclose(softmax(x), torch.softmax(x, 1), atol=1e-6)
    compared = gpu.compare({"triton": softmax, "torch": lambda x: torch.softmax(x, 1)}, x)
    print(compared)
    cold = compared.measurements[0].gpu.median
    theirs = do_bench(lambda: softmax(x), return_mode="median") / 1e3
    results["softmax"] = {"table": str(compared), "do_bench_us": theirs / US}
    check(
        "Triton's softmax: within 20 % of do_bench",
        abs(cold / theirs - 1) < 0.2,
        f"{cold / US:.2f} and {theirs / US:.2f} us",
    )


def prove_examples() -> None:
    """A kernel of the user's own, compiled in place, and a model whose layers are ranges."""
    from torch.utils.cpp_extension import load_inline

    kernel = """
    __global__ void square(const float* in, float* out, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = in[i] * in[i];
    }
    torch::Tensor square_all(torch::Tensor in) {
      auto out = torch::empty_like(in);
      const int n = in.numel();
      square<<<(n + 255) / 256, 256>>>(in.data_ptr<float>(), out.data_ptr<float>(), n);
      return out;
    }"""
    module = load_inline(
        name="own_square",
        cpp_sources="torch::Tensor square_all(torch::Tensor in);",
        cuda_sources=kernel,
        functions=["square_all"],
    )
    x = torch.randn(4096, 4096, device="cuda")
    assert torch.equal(module.square_all(x), x * x)
    compared = gpu.compare({"own kernel": module.square_all, "torch.square": torch.square}, x)
    print(compared)
    results["own kernel"] = str(compared)

    layers = [torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)]
    batch = torch.randn(256, 1024, device="cuda")
    timers: dict[str, list[gpu.Timer]] = {}
    for _ in range(20):
        with gpu.range("step"), gpu.timer("step") as step:
            y = batch
            with gpu.range("forward"):
                for i, layer in enumerate(layers):
                    with gpu.range(f"layer_{i}"), gpu.timer(f"layer_{i}") as timer:
                        y = torch.relu(layer(y))
                    timers.setdefault(timer.name, []).append(timer)
            with gpu.range("backward"):
                y.sum().backward()
        timers.setdefault("step", []).append(step)
    medians = {
        name: statistics.median(timer.wait() for timer in all_of_it)
        for name, all_of_it in timers.items()
    }
    print({name: f"{seconds / US:.0f} us" for name, seconds in medians.items()})
    within = sum(seconds for name, seconds in medians.items() if name != "step")
    check("the layers come to less than the step", within < medians["step"], within / US)
    results["mlp_us"] = {name: seconds / US for name, seconds in medians.items()}


def prove_busy_threads() -> None:
    """Threads that always want the interpreter's lock: PyTorch lets go of it in each launch, and to
    have it again is in the time; but no more than that."""
    stop = False

    def spin() -> None:
        while not stop:
            pass

    threads = [threading.Thread(target=spin) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        work: Callable[[], object] = lambda: torch.cuda._sleep(100_000)  # noqa: E731
        ours = []
        for _ in range(100):
            with gpu.timer() as timer:
                work()
            ours.append(timer.wait())
        theirs = events_by_hand(work, 100)
        measured = gpu.measure(work, time_cap=2)
    finally:
        stop = True
        for thread in threads:
            thread.join()
    print(measured)
    mine, hand = statistics.mean(ours), statistics.mean(theirs)
    check(
        "beside busy threads a timer is as good as events by hand",
        mine < 1.5 * hand,
        f"mean {mine / US:.0f} and {hand / US:.0f} us",
    )
    results["busy threads, us"] = [mine / US, hand / US]


# What ends the use of the device, each in a process of its own.
BEGIN = """
import ctypes, torch, pystrobe
from pystrobe import gpu
x = torch.zeros(64, device="cuda")
def tell(function):
    try:
        function()
        print("nothing was raised")
    except pystrobe.Error as error:
        print(str(error).replace(chr(10), " "))
"""
LAST_WORDS = {
    "a failed kernel is told": BEGIN
    + """
timer = gpu.timer()
timer.__enter__()
torch.zeros(4, device="cuda")[torch.full((1,), 9_999_999_999, device="cuda")]
timer.__exit__(None, None, None)
tell(timer.wait)
import os; os._exit(0)
""",
    "a device that was reset is told": BEGIN
    + """
timer = gpu.timer()
timer.__enter__()
torch.cuda.synchronize()
ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)
tell(lambda: timer.__exit__(None, None, None))
import os; os._exit(0)
""",
}


def prove_bad_days() -> None:
    x = torch.randn(64, device="cuda")

    def refused(what: str, function: Callable[[], object], words: str) -> None:
        try:
            function()
        except pystrobe.Error as error:
            check(what, words in str(error), str(error).splitlines()[0])
        else:
            check(what, False, "nothing was raised")

    def waits() -> None:
        torch.cuda.synchronize()

    refused("work that waits is let go", lambda: gpu.measure(waits, num_warmups=0), "held back")
    many = lambda: [x.add_(1) for _ in range(1_500)]  # noqa: E731
    refused("1,500 launches are let go", lambda: gpu.measure(many), "held back")
    few = gpu.measure(lambda: [x.add_(1) for _ in range(500)], name="500 adds", time_cap=1)
    check("500 launches are measured", few.gpu.count >= 10, few.gpu.count)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side), gpu.timer("side") as timer:
        torch.cuda._sleep(10_000_000)
    check("a timer does not wait", timer.seconds() is None, timer.seconds())
    seconds = timer.wait()
    check("its stream is the current one", seconds > 1e-3, f"{seconds * 1e3:.2f} ms")

    graph = torch.cuda.CUDAGraph()
    captured: list[BaseException] = []
    try:
        with torch.cuda.graph(graph):
            x.add_(1)
            try:
                gpu.timer("captured").__enter__()
            except pystrobe.GpuError as error:
                captured.append(error)
    except Exception as error:
        captured.append(error)
    check("a stream that is captured is told", "captured into" in str(captured[:1]), captured)

    prove_busy_threads()
    for what, program in LAST_WORDS.items():
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
        said = (ended.stdout or ended.stderr).strip().splitlines()[-1:]
        check(what, ended.returncode == 0 and "CUDA_ERROR" in "".join(said), said)

    begin = time.perf_counter()
    cost = 2_000
    for _ in range(cost):
        with gpu.timer():
            pass
    each = (time.perf_counter() - begin) / cost
    torch.cuda.synchronize()
    check("a timer costs below 20 us", each < 20 * US, f"{each / US:.1f} us")
    results["timer_us"] = each / US

    def events() -> None:
        timer = pystrobe._core.GpuTimer(0)
        timer.start()
        timer.stop()

    print(f"  of that the stream: {timeit(lambda: handle_of(None), number=1000) * 1e3:.2f} us")
    print(f"  the events: {timeit(events, number=1000) * 1e3:.2f} us")


def table() -> str:
    lines = [
        "| kernel of | less an empty one | CUPTI's record, less one | noise | events by hand |"
        " do_bench |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in results.get("short kernels", []):
        cells = [
            f"{row['cycles']:,} cycles",
            *(f"{row[key]:.2f} us" for key in ("net_us", "record_net_us")),
            f"{100 * row['noise']:.2f} %",
            *(f"{row[key]:.2f} us" for key in ("by_hand_us", "do_bench_us")),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    out = Path(sys.argv[1])
    proofs = (
        prove_devices,
        prove_compare,
        # torch.profiler keeps CUPTI.
        prove_measure,
        prove_benchmark,
        prove_bandwidth,
        prove_matmul,
        prove_triton,
        prove_examples,
        prove_bad_days,
    )
    status = prove_all(proofs, results, out / "gpu.json")
    (out / "gpu.md").write_text(table(), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
