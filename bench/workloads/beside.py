# SPDX-License-Identifier: Apache-2.0
"""What it costs a program to sample itself, all in one process:

    beside.py WORKLOAD BLOCKS OPTIONS

OPTIONS are those of pystrobe.Profiler as JSON; with "pyinstrument": true of pyinstrument's; null:
there is none. A block is some tenths of a second of work; those under the profiler stand between
those without it, and each is compared with its two neighbours: what the machine does meanwhile, it
does to all three. Before each some of the work is done that does not count: what it takes to begin
or end is not told. stdout: JSON with these ratios, of the CPU time of the thread (`cpu`) and of
elapsed time (`elapsed`).
"""

import importlib
import json
import sys
import time
from pathlib import Path

import measured

UNITS = {"fib": 8, "mixed": 12}
BEFORE_S = 0.05


def block(unit, count):
    """Seconds of CPU time and elapsed."""
    begin = time.perf_counter()
    while time.perf_counter() < begin + BEFORE_S:
        unit()
    cpu, elapsed = time.thread_time(), time.perf_counter()
    for _ in range(count):
        unit()
    return time.thread_time() - cpu, time.perf_counter() - elapsed


def unit_of(name):
    """The script's, which is not run as it is imported."""
    measured.run = lambda work: None
    return importlib.import_module(name).once


def profiler_of(options):
    if "pyinstrument" in options:
        import pyinstrument

        return pyinstrument.Profiler(interval=1 / options["rate"])
    import pystrobe

    return pystrobe.Profiler(**options)


def main():
    name, blocks, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    sys.path.insert(0, str(Path(__file__).parent))
    work = unit_of(name), UNITS[name]

    def under():
        if options is None:
            return block(*work)
        profiler = profiler_of(options)
        profiler.start()
        try:
            return block(*work)
        finally:
            profiler.stop()

    block(*work)
    under()  # what is read once
    before = block(*work)
    ratios = {"cpu": [], "elapsed": []}
    for _ in range(blocks):
        taken, after = under(), block(*work)
        for key, one, two, three in zip(ratios, before, taken, after):
            ratios[key].append(2 * two / (one + three))
        before = after
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
