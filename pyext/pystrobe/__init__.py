# SPDX-License-Identifier: Apache-2.0
"""pystrobe: a truthful sampling profiler for running Python programs.

The command line does most of the work: ``pystrobe attach PID``, or ``python -m pystrobe``. From
Python, to sample the program itself:

>>> import pystrobe
>>> with pystrobe.Profiler() as profiler:
...     work()
>>> profiler.profile.print()                           # the table and how far to trust it
>>> profiler.profile.save("work.html")                 # or .strobe .pb.gz .speedscope.json ...
>>> with pystrobe.region("load"):                      # a name for a part, in every report
...     load()

to trace every call of it:

>>> with pystrobe.Tracer() as tracer:
...     work()
>>> tracer.print()                                     # calls, elapsed and CPU time by function

and other programs:

>>> for thread in pystrobe.dump(pid).threads:          # every thread's stack, now
...     print(thread.name, thread.frames[0])
>>> report = pystrobe.read("out.strobe")               # where the time went, as data
>>> report.functions[0].name

Nothing is loaded before it is used: importing the package costs about a millisecond.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pystrobe._decorator import profile
    from pystrobe._dump import Dump, Frame, Local, ThreadStack, dump
    from pystrobe._enable import disable, enable
    from pystrobe._errors import (
        CorruptFileError,
        Error,
        GpuError,
        InvalidArgumentError,
        NotFoundError,
        NotPythonError,
        PermissionDeniedError,
        TargetExitedError,
        UnsupportedTargetError,
    )
    from pystrobe._executable import executable
    from pystrobe._gpu_report import (
        GpuDevice,
        GpuIdle,
        GpuKernelTimes,
        GpuMeanwhile,
        GpuMeanwhileLine,
        GpuOccupancy,
        GpuQuality,
        GpuReport,
        GpuSum,
        GpuUse,
        GpuWait,
        StackFrame,
    )
    from pystrobe._profile import Profile, Stack
    from pystrobe._profiler import Profiler
    from pystrobe._range_report import NamedRange, RangeOnStream
    from pystrobe._region import region
    from pystrobe._report import (
        CpuSplit,
        FunctionTimes,
        Metadata,
        Quality,
        Report,
        ThreadTimes,
        Weights,
        read,
    )
    from pystrobe._tracer import CallTimes, FunctionCalls, ThreadCalls, Tracer

    __version__: str

# Where each public name lives; type checkers read the imports above instead.
_HOMES = {
    "__version__": "_core",
    "Dump": "_dump",
    "Frame": "_dump",
    "Local": "_dump",
    "ThreadStack": "_dump",
    "dump": "_dump",
    "disable": "_enable",
    "enable": "_enable",
    "CorruptFileError": "_errors",
    "Error": "_errors",
    "GpuError": "_errors",
    "InvalidArgumentError": "_errors",
    "NotFoundError": "_errors",
    "NotPythonError": "_errors",
    "PermissionDeniedError": "_errors",
    "TargetExitedError": "_errors",
    "UnsupportedTargetError": "_errors",
    "executable": "_executable",
    "GpuDevice": "_gpu_report",
    "GpuIdle": "_gpu_report",
    "GpuKernelTimes": "_gpu_report",
    "GpuMeanwhile": "_gpu_report",
    "GpuMeanwhileLine": "_gpu_report",
    "GpuOccupancy": "_gpu_report",
    "GpuQuality": "_gpu_report",
    "GpuReport": "_gpu_report",
    "GpuSum": "_gpu_report",
    "GpuUse": "_gpu_report",
    "GpuWait": "_gpu_report",
    "StackFrame": "_gpu_report",
    "Profile": "_profile",
    "Stack": "_profile",
    "Profiler": "_profiler",
    "profile": "_decorator",
    "NamedRange": "_range_report",
    "RangeOnStream": "_range_report",
    "region": "_region",
    "CpuSplit": "_report",
    "FunctionTimes": "_report",
    "Metadata": "_report",
    "Quality": "_report",
    "Report": "_report",
    "ThreadTimes": "_report",
    "Weights": "_report",
    "read": "_report",
    "CallTimes": "_tracer",
    "FunctionCalls": "_tracer",
    "ThreadCalls": "_tracer",
    "Tracer": "_tracer",
}

__all__ = [
    "CallTimes",
    "CorruptFileError",
    "CpuSplit",
    "Dump",
    "Error",
    "Frame",
    "FunctionCalls",
    "FunctionTimes",
    "GpuDevice",
    "GpuError",
    "GpuIdle",
    "GpuKernelTimes",
    "GpuMeanwhile",
    "GpuMeanwhileLine",
    "GpuOccupancy",
    "GpuQuality",
    "GpuReport",
    "GpuSum",
    "GpuUse",
    "GpuWait",
    "InvalidArgumentError",
    "Local",
    "Metadata",
    "NamedRange",
    "NotFoundError",
    "NotPythonError",
    "PermissionDeniedError",
    "Profile",
    "Profiler",
    "Quality",
    "RangeOnStream",
    "Report",
    "Stack",
    "StackFrame",
    "TargetExitedError",
    "ThreadCalls",
    "ThreadStack",
    "ThreadTimes",
    "Tracer",
    "UnsupportedTargetError",
    "Weights",
    "__version__",
    "disable",
    "dump",
    "enable",
    "executable",
    "profile",
    "read",
    "region",
]


def _refuse_subinterpreters() -> None:
    """From 3.12 on the interpreter does it. Before that it hands the main one's module over, whose
    first call would wait for the lock that its own thread has."""
    import sys

    if sys.version_info >= (3, 12):
        return
    from importlib import import_module

    try:
        interpreters = import_module("_xxsubinterpreters")
    except ImportError:  # without it only C makes any
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError("module pystrobe does not support loading in subinterpreters")


def __getattr__(name: str) -> object:
    value: object
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"pystrobe.{_HOMES[name]}"), name)
    else:
        if name == "_core":  # which is a module, and about to be imported
            _refuse_subinterpreters()
        raise AttributeError(f"module 'pystrobe' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
