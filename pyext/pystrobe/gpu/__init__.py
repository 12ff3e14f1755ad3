# SPDX-License-Identifier: Apache-2.0
"""Time on the GPU, measured on the GPU. CUDA 12 or later, by the driver alone.

>>> from pystrobe import gpu
>>> gpu.why_not()                                      # None, or what a GPU is missing here
>>> with gpu.timer("forward") as timer:                # on the stream that PyTorch or CuPy uses
...     model(x)
>>> timer.wait()                                       # seconds of the device
>>> gpu.benchmark("matmul", run)                       # a few trials: elapsed time and the device's
>>> gpu.measure(run)                                   # until it is steady, launches kept out
>>> gpu.compare({"square": torch.square, "a*a": lambda a: a * a}, x)
>>> with gpu.range("step"):                            # for Nsight Systems, and in our own reports
...     train(batch)

Importing it loads nothing of a GPU's, and works where there is none. Ranges of libraries (NVTX) are
heard of those that use them for the first time after that.
"""

from pystrobe.gpu._benchmark import Benchmark, benchmark
from pystrobe.gpu._compare import Comparison, compare
from pystrobe.gpu._devices import Device, available, devices, why_not
from pystrobe.gpu._measure import Measurement, Summary, measure
from pystrobe.gpu._range import range as range
from pystrobe.gpu._range import range_pop, range_push, why_no_ranges
from pystrobe.gpu._schedule import Action, schedule
from pystrobe.gpu._timer import Timer, synchronize, timer

# Not `range`: `import *` is not to take the built-in one away.
__all__ = [
    "Action",
    "Benchmark",
    "Comparison",
    "Device",
    "Measurement",
    "Summary",
    "Timer",
    "available",
    "benchmark",
    "compare",
    "devices",
    "measure",
    "range_pop",
    "range_push",
    "schedule",
    "synchronize",
    "timer",
    "why_no_ranges",
    "why_not",
]
