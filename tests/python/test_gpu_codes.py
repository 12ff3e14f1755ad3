# SPDX-License-Identifier: Apache-2.0
"""Code objects that are freed while a profiler of the GPU knows paths by their addresses."""

from __future__ import annotations

import pytest
from gpu_traced import traced
from own_interpreters import Own

pytestmark = pytest.mark.beside_others

#: Offset of tp_dealloc in a type (Include/cpython/object.h).
SLOT = """
import ctypes
code = type((lambda: None).__code__)
word = ctypes.c_size_t.from_address(id(code) + 48)
DEALLOC = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def slot():
    return word.value
def take(function):
    word.value = ctypes.cast(function, ctypes.c_void_p).value
"""


def before_312(own: Own) -> None:
    if own.version >= (3, 12):
        pytest.skip("the interpreter tells")


def test_the_slot_that_frees_them_is_given_back(own: Own) -> None:
    before_312(own)
    found = traced(
        SLOT
        + """
before = slot()
with pystrobe.Profiler(mode="gpu") as profiler:
    t.launch(5)
    during = slot()
again = pystrobe.Profiler(mode="gpu")
again.start()
again.stop()
print(json.dumps([before == slot(), before == during]))
""",
        own,
    )
    assert found == [True, False]


def test_a_slot_that_another_took_meanwhile_is_left_to_it(own: Own) -> None:
    before_312(own)
    found = traced(
        SLOT
        + """
import gc
freed = []
profiler = pystrobe.Profiler(mode="gpu")
profiler.start()
ours = DEALLOC(slot())
@DEALLOC
def theirs(address):
    freed.append(address)
    ours(address)
take(theirs)
taken = slot()
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


def test_a_slot_that_was_given_back_past_us_is_taken_again(own: Own) -> None:
    before_312(own)
    found = traced(
        SLOT
        + """
original = slot()
next_one = DEALLOC(original)
@DEALLOC
def theirs(address):
    next_one(address)
take(theirs)
first = pystrobe.Profiler(mode="gpu")
first.start()
word.value = original
first.stop()
with pystrobe.Profiler(mode="gpu"):
    is_taken = slot() != original
print(json.dumps([is_taken, slot() == original]))
""",
        own,
    )
    assert found == [True, True]


def test_one_that_has_all_addresses_of_the_one_before_is_not_mistaken(own: Own) -> None:
    found = traced(
        """
        import types
        def base():
            t.launch(5)
        def made(i):
            names = {"co_name": sys.intern(f"own_{i:03}")}
            if sys.version_info >= (3, 11):
                names["co_qualname"] = sys.intern(f"own_{i:03}")
            return types.FunctionType(base.__code__.replace(**names), globals())
        with pystrobe.Profiler(mode="gpu") as profiler:
            for i in range(300):
                made(i)()
        print(json.dumps(sorted(w.frames[-2].function for w in profiler.profile.gpu.sums)))
        """,
        own,
    )
    assert found == [f"own_{i:03}" for i in range(300)]


SUBINTERPRETERS = """
import gc
try:
    import _interpreters as sub
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
