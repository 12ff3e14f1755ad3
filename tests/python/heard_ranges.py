# SPDX-License-Identifier: Apache-2.0
"""What was heard of ranges, by path. For tests, in processes of their own."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from typing import Any

import pystrobe
from pystrobe._range_report import NamedRange


def begin(*, timeline: bool = False, **options: Any) -> pystrobe.Profiler:
    """Of a program without a GPU, which is warned of."""
    profiler = pystrobe.Profiler(gpu=True, timeline=timeline, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profiler.start()
    return profiler


def _path(one: NamedRange) -> str:
    name = f"{one.domain}:{one.name}" if one.domain else one.name
    return name if one.parent is None else f"{_path(one.parent)}/{name}"


def counts(profile: pystrobe.Profile) -> dict[str, int]:
    """How often each began."""
    return {_path(one): one.count for one in profile.ranges}


def host_ns(profile: pystrobe.Profile) -> dict[str, int]:
    return {_path(one): one.host_ns for one in profile.ranges}


def on_devices(profile: pystrobe.Profile) -> dict[str, list[int]]:
    """Of each that put something on one stream: instances, works, span and busy nanoseconds."""
    return {
        _path(one): [stream.instances, stream.works, stream.span_ns, stream.busy_ns]
        for one in profile.ranges
        for stream in one.streams
    }


def spans(profile: pystrobe.Profile) -> list[tuple[str, int]]:
    """Of a timeline, each with its thread."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ranges.json")
        profile.save(path, format="trace-events")
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    named = [event for event in events if event.get("cat") == "user_annotation"]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in named)
    return [(event["name"], event["tid"]) for event in named]
