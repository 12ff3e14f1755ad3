# SPDX-License-Identifier: Apache-2.0
"""What the proofs on a device have in common."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pystrobe
import torch

failures: list[str] = []


def check(what: str, holds: bool, seen: object) -> None:
    print(f"{'ok  ' if holds else 'FAIL'} {what}: {seen}", flush=True)
    if not holds:
        failures.append(f"{what}: {seen}")


def profiled(work: Callable[[], object], **options: Any) -> Any:
    torch.cuda.synchronize()
    with pystrobe.Profiler(mode="gpu", **options) as profiler:
        work()
    return profiler.profile


def prove_all(proofs: Sequence[Callable[[], None]], results: dict[str, Any], file: Path) -> int:
    """Each, whatever became of those before it; `results` and what failed into `file`. The exit
    status."""
    for prove in proofs:
        print(f"-- {prove.__name__}", flush=True)
        begin = time.perf_counter()
        try:
            prove()
        except Exception:
            traceback.print_exc()
            failures.append(f"{prove.__name__} raised")
        results.setdefault("seconds", {})[prove.__name__] = round(time.perf_counter() - begin, 1)
    results["failures"] = failures
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if failures else 0
