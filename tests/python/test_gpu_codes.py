# SPDX-License-Identifier: Apache-2.0
"""Code objects that are freed while a profiler of the GPU knows paths by their addresses."""

from __future__ import annotations

import pytest
from gpu_traced import traced
from own_interpreters import Own

#: Offset of tp_dealloc in a type (Include/cpython/object.h).
SLOT = """
import ctypes
code = type((lambda: None).__code__)
def slot():
    return ctypes.c_size_t.from_address(id(code) + 48).value
"""


def test_the_slot_that_frees_them_is_given_back(own: Own) -> None:
    found = traced(
        SLOT
        + """
before = slot()
with pystrobe.Profiler(mode="gpu") as profiler:
    t.launch(5)
    during = slot()
again = pystrobe.Profiler(mode="gpu")
again.start(), again.stop()
print(json.dumps([before == slot(), before == during]))
""",
        own,
    )
    is_back, is_left_alone = found
    assert is_back
    assert is_left_alone == (own.version >= (3, 12)), "from 3.12 on the interpreter tells"


def test_a_slot_that_another_took_meanwhile_is_left_to_it(own: Own) -> None:
    found = traced(
        SLOT
        + """
import gc
DEALLOC = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
freed = []
profiler = pystrobe.Profiler(mode="gpu")
profiler.start()
ours = DEALLOC(slot())
@DEALLOC
def theirs(address):
    freed.append(address)
    ours(address)
taken = ctypes.cast(theirs, ctypes.c_void_p).value
ctypes.c_size_t.from_address(id(code) + 48).value = taken
profiler.stop()
with pystrobe.Profiler(mode="gpu") as second:
    for i in range(20):
        names = {"t": t}
        exec(f"def own_{i}():\\n    t.launch(5)\\nown_{i}()", names)
        del names
        gc.collect()
names = sorted(w.frames[-2].function for w in second.profile.gpu.sums)
print(json.dumps([slot() == taken, len(freed) >= 20, names]))
import os
sys.stdout.flush()
os._exit(0)
""",
        own,
    )
    is_theirs, all_freed, names = found
    assert is_theirs
    assert all_freed
    assert names == sorted(f"own_{i}" for i in range(20))


SUBINTERPRETERS = """
import gc
try:
    import _interpreters as sub
    run = sub.run_string
except ImportError:
    import _xxsubinterpreters as sub
    run = sub.run_string
inner = sub.create("legacy") if sys.version_info >= (3, 13) else sub.create(isolated=False)
run(inner, "import gpu_program as t, gc")
with pystrobe.Profiler(mode="gpu") as profiler:
    for i in range(50):
        run(inner, f\"\"\"
names = {{"t": t}}
exec("def own_{i}():\\\\n    t.launch(5)\\\\nown_{i}()", names)
del names
gc.collect()
\"\"\")
names = sorted(w.frames[-2].function for w in profiler.profile.gpu.sums)
print(json.dumps(names))
"""


def test_those_of_another_interpreter_are_not_mistaken(own: Own) -> None:
    if own.version < (3, 12):
        pytest.skip("the frames of a thread are those of its first interpreter there")
    assert traced(SUBINTERPRETERS, own) == sorted(f"own_{i}" for i in range(50))
