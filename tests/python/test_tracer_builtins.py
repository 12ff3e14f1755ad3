# SPDX-License-Identifier: Apache-2.0
"""Functions of C in a trace, where they are asked for."""

from __future__ import annotations

import pytest
from call_tracing import Way, each_but_frame_eval, told

pytestmark = pytest.mark.beside_others


@each_but_frame_eval
def test_functions_of_c_are_told_where_asked_for(way: Way) -> None:
    said = told(
        way,
        """
def work():
    for word in ("a", "b"):
        len(word)
        word.upper()
    [3, 1].sort()
    time.sleep(0.02)
with_c, without = traced(work, builtins=True), traced(work)
print(json.dumps({"with": {row.function: row.calls for row in with_c.stats() if not row.line},
    "sleep": next(row.self for row in with_c.stats() if row.function == "time.sleep"),
    "without": [row.function for row in without.stats() if not row.line]}))
""",
    )
    calls = said["with"]
    assert (calls["len"], calls["str.upper"], calls["list.sort"]) == (2, 2, 1)
    assert said["sleep"] >= 0.02
    assert said["without"] == []


@each_but_frame_eval
def test_a_bound_function_of_c_ends_no_other_call(way: Way) -> None:
    """Of such a call some interpreters tell the end alone, by the function that it is of."""
    said = told(
        way,
        """
import types
bound = types.MethodType(sorted, [2, 1])
def inner():
    pass
def key(number):
    bound()
    inner()
    return number
def work():
    sorted([3, 1, 2], key=key)
tracer = traced(work, builtins=True)
rows = {row.function: row for row in tracer.stats()}
print(json.dumps([{one.function: one.calls for one in rows["inner"].callers}, rows["key"].calls,
                  rows["sorted"].calls]))
""",
    )
    callers, keys, calls = said
    assert callers == {"key": 3}
    assert keys == 3
    assert calls == 4 or (calls == 1 and way.engine == "setprofile")


@each_but_frame_eval
def test_a_function_of_c_is_of_the_type_that_has_it(way: Way) -> None:
    """Not of the one derived from it whose object came first."""
    said = told(
        way,
        """
class Letters(list):
    pass
class Table(dict):
    pass
def work():
    Letters().append(1)
    [].append(2)
    Table.fromkeys("a")
    dict.fromkeys("b")
tracer = traced(work, builtins=True)
print(json.dumps({row.function: row.calls for row in tracer.stats() if not row.line}))
""",
    )
    assert (said["list.append"], said["dict.fromkeys"]) == (2, 2)
    assert not [name for name in said if name.startswith(("Letters.", "Table."))]


@each_but_frame_eval
def test_many_functions_of_c_are_told_apart(way: Way) -> None:
    """More than a thread remembers at a time, and types that are freed meanwhile."""
    said = told(
        way,
        """
import cmath, math, operator, types
functions = [one for module in (math, cmath, operator) for one in vars(module).values()
             if isinstance(one, types.BuiltinFunctionType)]
def work():
    for turn in range(4):
        for i, function in enumerate(functions):
            if i % 4 >= turn:
                COUNTS[function.__name__] += 1
                try:
                    function(0.5)
                except (TypeError, ValueError):
                    pass
    if ENGINE == "monitoring":  # which tells of types, too
        for i in range(400):
            COUNTS[f"Type{i}"] += 1
            type(f"Type{i}", (), {})()
tracer = traced(work, builtins=True)
print(json.dumps([found(tracer, COUNTS), COUNTS]))
""",
    )
    counted, true = said
    assert counted == true
    assert len(true) > (500 if way.engine == "monitoring" else 100)


@each_but_frame_eval
def test_a_function_of_c_that_is_of_no_library_is_kept_as_long_as_its_calls(way: Way) -> None:
    """As pybind11 makes them: what tells one from another would be that of the next."""
    said = told(
        way,
        """
import ctypes, gc, weakref
class Definition(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("text", ctypes.c_char_p)]
make = ctypes.pythonapi.PyCFunction_NewEx
make.restype = ctypes.py_object
make.argtypes = [ctypes.POINTER(Definition), ctypes.py_object, ctypes.py_object]
get_item = ctypes.cast(ctypes.pythonapi.PyObject_GetItem, ctypes.c_void_p).value
definition = Definition(b"ours", get_item, 8, None)  # METH_O
functions = [make(definition, {0: 1}, None)]
there = weakref.ref(functions[0])
def work():
    return functions[0](0) + functions[0](0)
tracer = traced(work, builtins=True)
functions.clear()
kept = [found(tracer, ["ours"])["ours"], there() is not None]
del tracer
gc.collect()
print(json.dumps([*kept, there() is None]))
""",
    )
    assert said == [2, True, True]
