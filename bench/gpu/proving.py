# SPDX-License-Identifier: Apache-2.0
"""What the proofs on a device have in common."""

from __future__ import annotations

from collections.abc import Callable
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
