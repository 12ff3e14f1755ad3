# SPDX-License-Identifier: Apache-2.0
"""Whether the tests had the CPUs to themselves.

Times are compared with what really happened. A host that takes the CPUs away from a virtual
machine, or another program, makes a sampler late through no fault of its own; what is then found
wrong may be so. Such a test runs again; one that fails undisturbed has failed.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

#: Share of all CPU time that others may take; the kernel's own threads take less.
MOST_OF_OTHERS = 0.02
#: Seconds: the clocks are coarse.
LEAST_OF_OTHERS = 0.1
#: How often a test that was disturbed runs again, before its failure counts.
RERUNS = 3


@dataclass(frozen=True)
class CpuTimes:
    """Of the whole machine, in seconds."""

    used: float  #: by programs and the kernel
    stolen: float  #: by the host of a virtual machine
    all: float  #: by anybody or nobody
    own: float  #: of this process and its children that have ended

    @staticmethod
    def now() -> CpuTimes:
        # user nice system idle iowait irq softirq steal
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        ticks = [int(field) for field in fields]
        hz = os.sysconf("SC_CLK_TCK")
        idle, stolen = ticks[3] + ticks[4], ticks[7]
        usages = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return CpuTimes(
            used=(sum(ticks) - idle - stolen) / hz,
            stolen=stolen / hz,
            all=sum(ticks) / hz,
            own=sum(usage.ru_utime + usage.ru_stime for usage in usages),
        )


def taken_by_others(before: CpuTimes, after: CpuTimes) -> float:
    """Seconds of CPU time that the host and other programs took between the two."""
    foreign = (after.used - before.used) - (after.own - before.own)
    return after.stolen - before.stolen + max(0.0, foreign)


class Witness:
    """Of one test at a time."""

    def __init__(self) -> None:
        self._begin = CpuTimes.now()

    def begin(self) -> None:
        self._begin = CpuTimes.now()

    def was_disturbed(self) -> bool:
        now = CpuTimes.now()
        taken = taken_by_others(self._begin, now)
        return taken > max(LEAST_OF_OTHERS, MOST_OF_OTHERS * (now.all - self._begin.all))
