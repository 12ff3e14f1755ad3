# SPDX-License-Identifier: Apache-2.0
"""CUDA by C++, for the proofs: helper.cpp, built where it is used."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).with_name("helper.cpp")
#: CUPTI that PyTorch has loaded.
CUPTI = "libcupti.so.13"
#: PTX of a kernel that does nothing, with whatever threads and shared memory it is launched.
NOTHING = ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry nothing() { ret; }\n"


class _Seen(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 256),
        ("threads", ctypes.c_int),
        ("dynamic_shared", ctypes.c_int),
        ("blocks", ctypes.c_int),
        ("clusters", ctypes.c_int),
    )


@dataclass(frozen=True)
class Launched:
    """A launch, and what the driver says of it."""

    name: str
    """Mangled."""
    threads: int
    dynamic_shared: int
    blocks: int
    """cuOccupancyMaxActiveBlocksPerMultiprocessor."""
    clusters: int
    """cuOccupancyMaxActiveClusters; 0 of a launch without clusters."""


def _headers() -> list[Path]:
    """Where CUDA's may be."""
    roots = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    roots += [Path(path) / "nvidia/cu13" for path in sys.path if path]
    found = [root / "include" for root in roots]
    found += [root / "extras/CUPTI/include" for root in roots]
    return [path for path in found if path.is_dir()]


@cache
def _library(cupti: str) -> ctypes.CDLL:
    includes = [f"-I{path}" for path in _headers()]
    flags = ["-O2", "-std=c++20", "-shared", "-fPIC"]
    with TemporaryDirectory() as directory:
        built = f"{directory}/helper.so"
        subprocess.run(["g++", *flags, *includes, str(SOURCE), "-o", built, "-ldl"], check=True)
        library = ctypes.CDLL(built)
    library.helper_seen.restype = ctypes.c_size_t
    if not library.helper_open(cupti.encode()):
        raise OSError(f"no driver, or no {cupti}")
    return library


def build(cupti: str = CUPTI) -> None:
    """Beforehand, where it must not take time later."""
    _library(cupti)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise RuntimeError(f"{what}: {result}")


@contextmanager
def cupti_alone(*, records: bool) -> Iterator[None]:
    """CUPTI as a profiler uses it, whose callbacks at launches do nothing and whose records are
    thrown away: what no profiler that has it can be below."""
    library = _library(CUPTI)
    _check(library.helper_start(int(records)), "starting CUPTI")
    try:
        yield
    finally:
        _check(library.helper_stop(), "ending CUPTI")


@contextmanager
def looking() -> Iterator[list[Launched]]:
    """Fills the list with the kernels launched inside, at the end."""
    library = _library(CUPTI)
    _check(library.helper_look(), "starting CUPTI")
    found: list[Launched] = []
    try:
        yield found
    finally:
        _check(library.helper_stop(), "ending CUPTI")
        first = ctypes.POINTER(_Seen)()
        count = library.helper_seen(ctypes.byref(first))
        found += [
            Launched(one.name.decode(), one.threads, one.dynamic_shared, one.blocks, one.clusters)
            for one in first[:count]
        ]


def launch(
    ptx: str,
    name: str,
    count: int,
    *,
    threads: int = 1,
    dynamic_shared: int = 0,
    cupti: str = CUPTI,
) -> None:
    """So many launches of one block on the default stream, without Python in between, and waits for
    them. A context must be current."""
    result = _library(cupti).helper_launch(
        ptx.encode(), name.encode(), ctypes.c_uint64(count), threads, dynamic_shared
    )
    _check(result, f"launching {name}")
