# SPDX-License-Identifier: Apache-2.0
"""Programs that the kernel refuses something: for Popen's preexec_fn."""

from __future__ import annotations

import ctypes
import struct

PERF_EVENT_OPEN = 298
PROCESS_VM_READV = 310
PROCESS_VM_WRITEV = 311


def forbid(system_call: int) -> None:
    """A seccomp filter as sandboxes have it: the call fails with EPERM."""
    allow, refuse = 0x7FFF0000, 0x00050000 | 1
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, system_call), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)]
    program = b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(program)
    filter_ = struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(buffer))
    no_new_privs, set_seccomp, mode_filter = 38, 22, 2
    libc = ctypes.CDLL(None)
    if libc.prctl(no_new_privs, 1, 0, 0, 0) or libc.prctl(set_seccomp, mode_filter, filter_):
        raise OSError("no seccomp here")


def forbid_perf_events() -> None:
    forbid(PERF_EVENT_OPEN)


def forbid_reading() -> None:
    forbid(PROCESS_VM_READV)
