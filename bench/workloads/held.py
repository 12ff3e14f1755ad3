# SPDX-License-Identifier: Apache-2.0
"""For how long each sample holds a thread of a program that samples itself:

    held.py OPTIONS DEPTH SECONDS

OPTIONS are those of pystrobe.Profiler as JSON, DEPTH is that of the stack, whose leaf is busy.
stdout: JSON with how many samples it was (`samples`), and the median and the 99th percentile
(`median_ns`, `p99_ns`). Runs on any interpreter that has the package.
"""

import json
import sys
import time

import pystrobe

PROFILER = pystrobe.Profiler(**json.loads(sys.argv[1]))


def descend(depth):
    if depth > 1:
        descend(depth - 1)
    else:
        spin(float(sys.argv[3]))


def spin(seconds):
    end = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < end:
        for i in range(1000):
            total += i


sys.setrecursionlimit(int(sys.argv[2]) + 1000)
with PROFILER:
    # The module itself, and spin.
    descend(int(sys.argv[2]) - 2)
quality = PROFILER.profile.quality
print(
    json.dumps(
        {
            "samples": quality.held_count,
            "median_ns": quality.held_median_ns,
            "p99_ns": quality.held_p99_ns,
        }
    )
)
