# SPDX-License-Identifier: Apache-2.0
"""What it costs a program to sample itself, all in one process:

    beside.py WORKLOAD BLOCKS OPTIONS

OPTIONS are the profiler's, as JSON; null: there is none. A block is some tenths of a second of
work; those under the profiler stand between those without it, and each is compared with its two
neighbours: what the machine does meanwhile, it does to all three. stdout: JSON with these ratios,
of the CPU time of the thread (`cpu`) and of elapsed time (`elapsed`).
"""

import importlib
import json
import sys
import time
from pathlib import Path

import measured

UNITS = {"fib": 8, "mixed": 12}


def block(work):
    """Seconds of CPU time and elapsed."""
    cpu, elapsed = time.thread_time(), time.perf_counter()
    work()
    return time.thread_time() - cpu, time.perf_counter() - elapsed


def work_of(name):
    """The script's, which is not run as it is imported."""
    measured.run = lambda work: None
    module = importlib.import_module(name)

    def work():
        for _ in range(UNITS[name]):
            module.once()

    return work


def main():
    import pystrobe

    name, blocks, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    sys.path.insert(0, str(Path(__file__).parent))
    work = work_of(name)

    def under():
        if options is None:
            return block(work)
        profiler = pystrobe.Profiler(**options)
        profiler.start()
        try:
            return block(work)
        finally:
            profiler.stop()

    block(work)
    under()  # what is read once
    before = block(work)
    ratios = {"cpu": [], "elapsed": []}
    for _ in range(blocks):
        taken, after = under(), block(work)
        for key, one, two, three in zip(ratios, before, taken, after):
            ratios[key].append(2 * two / (one + three))
        before = after
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
