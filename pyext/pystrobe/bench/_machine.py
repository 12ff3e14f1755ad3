# SPDX-License-Identifier: Apache-2.0
"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def field_of(file: str, key: str) -> str:
    for line in Path(file).read_text().splitlines():
        name, _, value = line.replace("=", ":", 1).partition(":")
        if name.strip() == key:
            return value.strip().strip('"')
    return "unknown"


def numeric(release: str) -> str:
    """Without what a builder of kernels appends for himself: 6.1.0 of 6.1.0-13-amd64."""
    found = re.match(r"\d+(\.\d+)*", release)
    return found[0] if found else "unknown"


def describe() -> dict[str, str | int]:
    flags = field_of("/proc/cpuinfo", "flags").split()
    return {
        "processor": field_of("/proc/cpuinfo", "model name"),
        "cpus": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in flags,
        "memory": field_of("/proc/meminfo", "MemTotal"),
        "kernel": numeric(platform.release()),
        "system": field_of("/etc/os-release", "PRETTY_NAME"),
        "glibc": platform.libc_ver()[1],
    }


def stolen_ticks() -> int:
    """CPU time that the host gave to others, in ticks, since boot."""
    return int(Path("/proc/stat").read_text().splitlines()[0].split()[8])
