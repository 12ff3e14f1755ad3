# SPDX-License-Identifier: Apache-2.0
"""Programs that trace the mock of a GPU, and say what was found."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from on_mock_gpu import run
from own_interpreters import THIS, Own

# What programs below have in common: their works as [path, kernel, count, ns].
PREAMBLE = """
import threading
t.begin()

def works(profile):
    return [
        [[f.function for f in w.frames], w.short_name, w.count, w.total_ns]
        for w in profile.gpu.sums
    ]

def leaf(microseconds=5):
    t.launch(microseconds)

def many(count):
    for _ in range(count):
        leaf()
"""


def traced(program: str, own: Own = THIS) -> Any:
    """What ``program`` prints, as JSON."""
    return json.loads(run(PREAMBLE + textwrap.dedent(program), own=own).splitlines()[-1])
