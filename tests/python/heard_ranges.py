# SPDX-License-Identifier: Apache-2.0
"""What was heard of ranges, by path. For tests, in processes of their own."""

from __future__ import annotations

from pystrobe import _core


def _paths(work: _core.GpuWork) -> list[str]:
    paths: list[str] = []
    for parent, domain, name, _, _ in work.ranges["ranges"]:
        path = f"{domain}:{name}" if domain else name
        paths.append(path if parent is None else f"{paths[parent]}/{path}")
    return paths


def counts(work: _core.GpuWork) -> dict[str, int]:
    """How often each began."""
    found = work.ranges["ranges"]
    return {path: one[3] for path, one in zip(_paths(work), found)}


def host_ns(work: _core.GpuWork) -> dict[str, int]:
    found = work.ranges["ranges"]
    return {path: one[4] for path, one in zip(_paths(work), found)}


def on_devices(work: _core.GpuWork) -> dict[str, list[int]]:
    """Of each that put something on one stream: instances, works, span and busy nanoseconds."""
    paths = _paths(work)
    return {
        paths[number]: [instances, works, span, busy]
        for number, _, _, instances, span, busy, works in work.ranges["streams"]
    }


def spans(work: _core.GpuWork) -> list[tuple[str, int]]:
    """In the order of their ends, with the thread of each."""
    paths = _paths(work)
    assert all(begin <= end for begin, end, _, _ in work.ranges["spans"])
    return [(paths[number], tid) for _, _, number, tid in work.ranges["spans"]]
