#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is worked out of a kernel's shape beside what the driver says of the kernel: blocks on a
multiprocessor, clusters, waves and their tail. prove_shapes.py OUT_DIRECTORY. See
run_on_device.sh."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from helper import NOTHING, launch, looking
from proving import check, profiled, prove_all
from pystrobe import gpu
from torch.nn import functional

WARP = 32
WARPS_EACH = 64  # that a multiprocessor of compute capability 9.0 holds
KILOBYTE = 1024
results: dict[str, Any] = {}


def works() -> dict[str, Callable[[], object]]:
    def of(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    x, square, heads = torch.randn(1 << 20, device="cuda"), of(4096, 4096), of(8, 16, 1024, 64)
    rows = torch.randn(4096, 1000, device="cuda")
    return {
        "add": lambda: x + x,
        "sum": lambda: x.sum(),
        "softmax": lambda: functional.softmax(rows, dim=-1),
        "layer_norm": lambda: functional.layer_norm(rows, (1000,)),
        "sort": lambda: x.sort(),
        "matmul, bfloat16": lambda: square @ square,
        "matmul, float32": lambda: rows @ rows.T,
        "attention": lambda: functional.scaled_dot_product_attention(heads, heads, heads),
        "48 KB": lambda: launch(NOTHING, "nothing", 1, threads=96, dynamic_shared=48 * KILOBYTE),
        "100 KB": lambda: launch(NOTHING, "nothing", 1, threads=96, dynamic_shared=100 * KILOBYTE),
        "1,000 threads": lambda: launch(NOTHING, "nothing", 1, threads=1000),
    }


def by_the_driver(work: Callable[[], object]) -> list[tuple[int, ...]]:
    with looking() as seen:
        work()
        torch.cuda.synchronize()
    return sorted({(one.threads, one.dynamic_shared, one.blocks, one.clusters) for one in seen})


def filled(kernel: Any, clusters: int, multiprocessors: int) -> tuple[float, ...]:
    """Theoretical occupancy, waves and tail, by hand."""
    found = kernel.occupancy
    at_once = found.blocks_per_multiprocessor * multiprocessors
    if clusters > 0:
        at_once = min(at_once, clusters * math.prod(kernel.cluster))
    warps = math.ceil(math.prod(kernel.block) / WARP)
    waves = math.prod(kernel.last_grid) / at_once
    return warps * at_once / (WARPS_EACH * multiprocessors), waves, waves / math.ceil(waves)


def prove_occupancy() -> None:
    multiprocessors = gpu.devices()[0].multiprocessors
    rows: dict[str, Any] = {}
    results["occupancy"] = rows
    most_shared, clustered = 0, 0
    for name, work in works().items():
        work()
        theirs = by_the_driver(work)
        clusters_of = {(one[0], one[1], one[2]): one[3] for one in theirs}
        kernels = [one for one in profiled(work).gpu.sums if one.kind == "kernel"]
        ours = []
        for kernel in kernels:
            found = kernel.occupancy
            shape = (math.prod(kernel.block), kernel.dynamic_shared)
            ours.append((*shape, found.blocks_per_multiprocessor))
            clusters = clusters_of.get(ours[-1], 0)
            expected = filled(kernel, clusters, multiprocessors)
            told = (found.theoretical, found.waves, found.tail_efficiency)
            is_right = all(math.isclose(a, b) for a, b in zip(told, expected))
            check(f"{name}: {kernel.short_name}: occupancy, waves, tail", is_right, told)
            most_shared = max(most_shared, kernel.dynamic_shared + kernel.static_shared)
            clustered += clusters > 0
        same = sorted(set(ours)) == [one[:3] for one in theirs]
        check(f"{name}: blocks as the driver has them", same and bool(ours), (sorted(ours), theirs))
        rows[name] = [dict(zip(("threads", "shared", "blocks", "clusters"), one)) for one in theirs]
    check("one has more than 48 KB", most_shared > 48 * KILOBYTE, most_shared)
    check("one has clusters", clustered > 0, clustered)


def main() -> int:
    return prove_all((prove_occupancy,), results, Path(sys.argv[1]) / "shapes.json")


if __name__ == "__main__":
    sys.exit(main())
