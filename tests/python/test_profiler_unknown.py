# SPDX-License-Identifier: Apache-2.0
"""A CPython that is none of those known cannot sample itself, and is told so."""

from __future__ import annotations

import pytest
from own_interpreters import Own
from own_program import MODES, answer

pytest.importorskip("pystrobe", reason="the package is not installed: make build")

# Where an interpreter tells which release it is, for others to read: made that of a later one, and
# put back.
PRETEND = """
import ctypes, mmap, sys
libc = ctypes.CDLL(None, use_errno=True)

def told():
    if sys.version_info >= (3, 13):
        cookie = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        assert ctypes.string_at(cookie, 8) == b"xdebugpy"
        return cookie + 8, (0x032000F0).to_bytes(8, "little")
    if sys.version_info >= (3, 11):
        version = ctypes.addressof(ctypes.c_ulong.in_dll(ctypes.pythonapi, "Py_Version"))
        return version, (0x032000F0).to_bytes(8, "little")
    ctypes.pythonapi.Py_GetVersion.restype = ctypes.c_void_p
    return ctypes.pythonapi.Py_GetVersion(), b"3.32.0 "

def write(address, data):
    page = address & -mmap.PAGESIZE
    size = address + len(data) - page
    all_of_it = mmap.PROT_READ | mmap.PROT_WRITE
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(size), all_of_it) == 0
    ctypes.memmove(address, data, len(data))
"""


@MODES
def test_an_unknown_release_is_refused(own: Own, mode: str) -> None:
    said = answer(
        PRETEND
        + """
import json, os, signal, pystrobe
with pystrobe.Profiler(mode=MODE): pass
def state():
    return [str(signal.getsignal(signal.SIGURG)), tasks(), len(os.listdir("/proc/self/fd"))]
before = state()
address, other = told()
own = ctypes.string_at(address, len(other))
write(address, other)
try:
    pystrobe.enable(mode=MODE)
    refused = None
except pystrobe.UnsupportedTargetError as error:
    refused = str(error)
write(address, own)
after = state()
with pystrobe.Profiler(mode=MODE, rate=1000) as again:
    burn50()
print(json.dumps({"refused": refused, "before": before, "after": after,
    "taken": again.profile.quality.taken}))
""",
        mode,
        own,
    )
    assert said["refused"] is not None
    assert "3.32.0" in said["refused"]
    assert said["after"] == said["before"]
    assert said["taken"] > 10
