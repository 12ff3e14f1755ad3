# SPDX-License-Identifier: Apache-2.0
"""What GPUs there are, asked without touching any."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass

from pystrobe import _core
from pystrobe._errors import Error

# Longer than any driver takes to begin.
_PATIENCE = 120.0


@dataclass(frozen=True)
class Device:
    """A GPU as the CUDA driver describes it. Figures are its greatest, not those of now."""

    index: int
    """As ``CUDA_VISIBLE_DEVICES`` leaves them."""
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    clock_hz: float
    """Of the multiprocessors."""
    memory_clock_hz: float
    memory_bus_bits: int

    @property
    def memory_bandwidth(self) -> float:
        """Bytes a second, by the bus and its clock: two words a cycle."""
        return 2 * self.memory_clock_hz * self.memory_bus_bits / 8


def _devices_here() -> list[Device]:
    return [
        Device(**{**found, "compute_capability": tuple(found["compute_capability"])})
        for found in _core.gpu_devices()
    ]


# To initialise the driver takes a part of a second, some hundred megabytes of address space, and
# the use of CUDA from every child that this process forks later.
def _devices_in_a_child() -> list[Device]:
    if not sys.executable:
        raise Error("no interpreter to ask the CUDA driver in: sys.executable is empty")
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = (
        f"import sys, json; sys.path.insert(0, {package!r})\n"
        "from dataclasses import asdict\n"
        "from pystrobe import Error\n"
        "from pystrobe.gpu import _devices\n"
        "try: print(json.dumps([asdict(d) for d in _devices._devices_here()]))\n"
        "except Error as error: print(json.dumps([error.message, error.hint]), file=sys.stderr)"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSTROBE_")}
    child = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        env=environment,
        text=True,
        timeout=_PATIENCE,
    )
    if child.stdout:
        return [
            Device(**{**found, "compute_capability": tuple(found["compute_capability"])})
            for found in json.loads(child.stdout)
        ]
    said = child.stderr.strip().splitlines() or [f"it ended with {child.returncode}"]
    try:
        message, hint = json.loads(said[-1])
    except ValueError:
        raise Error(f"the CUDA driver could not be asked: {said[-1]}") from None
    raise Error(message, hint)


@functools.cache
def _found() -> tuple[tuple[Device, ...], str | None]:
    """The devices, and why there are none."""
    try:
        initialized = _core.gpu_is_initialized()
        found = _devices_here() if initialized else _devices_in_a_child()
    except (Error, OSError, subprocess.SubprocessError) as error:
        return (), str(error)
    if not found:
        return (), "the CUDA driver shows no device"
    return tuple(found), None


def devices() -> list[Device]:
    """The GPUs that this process may use; none where :func:`why_not` tells why.

    Never raises, and initialises nothing here: where the program has not done it, the driver is
    asked in a process of its own, once."""
    return list(_found()[0])


def why_not() -> str | None:
    """Why there is no GPU to be used here, in words; ``None`` where there is one. As
    :func:`devices`."""
    return _found()[1]


def available() -> bool:
    """Whether there is a GPU. As :func:`devices`."""
    return why_not() is None
