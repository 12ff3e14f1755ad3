# SPDX-License-Identifier: Apache-2.0
"""What GPUs there are, asked without touching any."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from pystrobe import _core
from pystrobe._errors import Error

# Longer than any driver takes to begin.
_PATIENCE = 120.0
# Before what the child answers: other things may print there.
_MARK = "pystrobe.gpu: "
# So that a program that is taken for an interpreter does not ask itself for ever.
_GUARD = "PYSTROBE_GPU_CHILD"
# Nothing of pystrobe's is to begin there, nor is a tool for GPUs to see another process.
_NOT_FOR_IT = ("PYSTROBE_", "CUDA_INJECTION", "NVTX_INJECTION")


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
    """0 where the driver does not tell."""
    memory_bus_bits: int

    @property
    def memory_bandwidth(self) -> float:
        """Bytes a second, by the bus and its clock: two words a cycle."""
        return 2 * self.memory_clock_hz * self.memory_bus_bits / 8


def _described(all_of_them: list[dict[str, Any]]) -> list[Device]:
    return [
        Device(**{**one, "compute_capability": tuple(one["compute_capability"])})
        for one in all_of_them
    ]


def answer() -> None:
    """In the child: prints what its driver shows, or why it shows nothing."""
    try:
        said: dict[str, Any] = {"devices": _core.gpu_devices()}
    except Error as error:
        said = {"message": error.message, "hint": error.hint}
    print(_MARK + json.dumps(said), flush=True)


# To initialise the driver takes a part of a second, some hundred megabytes of address space, and
# the use of CUDA from every child that this process forks later.
def _devices_in_a_child() -> list[Device]:
    if _GUARD in os.environ or getattr(sys, "frozen", False) or not sys.executable:
        raise Error(
            f"there is no interpreter to ask the CUDA driver in: sys.executable is "
            f"{sys.executable!r}, and it may be this program",
            "initialise CUDA first (torch.cuda.init(), say): then it is asked here",
        )
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = (
        f"import sys; sys.path.append({package!r})\n"
        "from pystrobe.gpu import _devices\n_devices.answer()"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_FOR_IT)}
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, _GUARD: "1"},
        encoding="utf-8",
        errors="replace",
    )
    try:
        out, err = child.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        raise Error(f"the CUDA driver did not answer within {_PATIENCE:.0f} s") from None
    for line in out.splitlines():
        if line.startswith(_MARK):
            said = json.loads(line[len(_MARK) :])
            if "devices" in said:
                return _described(said["devices"])
            raise Error(said["message"], said["hint"])
    last = (err.strip().splitlines() or [f"the child ended with {child.returncode}"])[-1]
    raise Error(f"the CUDA driver could not be asked in a child of its own: {last}")


def _found() -> tuple[tuple[Device, ...], str | None]:
    """The devices, and why there are none."""
    try:
        is_initialized = _core.gpu_is_initialized()
    except Error as error:
        return (), str(error)
    return _asked(is_initialized)


# Once in a child, and again once the driver can be asked here.
@functools.cache
def _asked(is_initialized: bool) -> tuple[tuple[Device, ...], str | None]:
    try:
        found = _described(_core.gpu_devices()) if is_initialized else _devices_in_a_child()
    except (Error, OSError, ValueError, TypeError, KeyError) as error:
        return (), str(error)
    if not found:
        return (), "the CUDA driver shows no device"
    return tuple(found), None


def devices() -> list[Device]:
    """The GPUs that this process may use; none where :func:`why_not` tells why.

    Never raises, and initialises nothing here: where the program has not done it, the driver is
    asked in a process of its own, once; and here once it has."""
    return list(_found()[0])


def why_not() -> str | None:
    """Why there is no GPU to be used here, in words; ``None`` where there is one. As
    :func:`devices`."""
    return _found()[1]


def available() -> bool:
    """Whether there is a GPU. As :func:`devices`."""
    return why_not() is None
