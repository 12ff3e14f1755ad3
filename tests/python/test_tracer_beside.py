# SPDX-License-Identifier: Apache-2.0
"""Tracing beside others who have the interpreter's hooks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from call_tracing import Way, each_monitoring, name_of_way, told, ways
from own_interpreters import Own, own_interpreters
from own_program import answer
from readers import need

pytestmark = pytest.mark.beside_others

# --- who holds what is wanted is named ---

HELD = """
import json, sys
import pystrobe
def step(): pass
def refused(engine):
    try:
        pystrobe.Tracer(engine=engine).start()
    except pystrobe.Error as error:
        return str(error)
"""


@each_monitoring
@pytest.mark.parametrize("ids", [(2, 3, 4), range(6)], ids=["ours", "all"])
def test_without_a_tool_id_its_holders_are_named(way: Way, ids: range) -> None:
    error, engine, calls, holders = answer(
        f"""{HELD}
ids = {list(ids)}
for tool in ids:
    sys.monitoring.use_tool_id(tool, f"tool {{tool}}")
error = refused("monitoring")
with pystrobe.Tracer() as tracer:
    step()
print(json.dumps([error, tracer.engine, sum(tracer.call_counts().values()),
                  [sys.monitoring.get_tool(tool) for tool in ids]]))
""",
        by=way.by,
    )
    assert "tool ids for profilers are taken: tool 3, tool 4, tool 2" in error
    assert 'the engine "setprofile"' in error
    assert (engine, calls) == ("PyEval_SetProfile", 1)
    assert holders == [f"tool {tool}" for tool in ids]


HOLDERS = {
    "function": ("def watch(*event): pass\nsys.setprofile(watch)", "__main__.watch (<string>:"),
    "method": (
        "class Watch:\n    def on(self, *event): pass\nsys.setprofile(Watch().on)",
        "__main__.Watch.on (<string>:",
    ),
    "object": (
        "class Watch:\n    def __call__(self, *event): pass\nsys.setprofile(Watch())",
        "an object of type __main__.Watch",
    ),
}
CPROFILE = ("import cProfile\ncProfile.Profile().enable()", "an object of type cProfile.Profile")


@pytest.mark.parametrize("by", own_interpreters(), ids=lambda by: by.name)
def test_who_has_the_profile_hook_is_named(by: Own) -> None:
    # From 3.12 on cProfile has a tool id of sys.monitoring instead.
    cases = {**HOLDERS, **({"cProfile": CPROFILE} if by.version < (3, 12) else {})}
    errors = answer(
        f"""{HELD}
errors = []
for set_hook in {[set_hook for set_hook, _ in cases.values()]!r}:
    exec(set_hook)
    errors.append(refused("setprofile"))
    sys.setprofile(None)
print(json.dumps(errors))
""",
        by=by,
    )
    for error, (_, holder) in zip(errors, cases.values()):
        assert f"has the hook of a thread (sys.setprofile): {holder}" in error


@pytest.mark.parametrize("by", own_interpreters(), ids=lambda by: by.name)
def test_who_has_that_of_another_thread_keeps_it(by: Own) -> None:
    error, kept = answer(
        f"""{HELD}
import threading
def watch(*event): pass
begun, ends, kept = threading.Event(), threading.Event(), []
def other():
    sys.setprofile(watch)
    begun.set()
    ends.wait()
    kept.append(sys.getprofile() is watch)
    sys.setprofile(None)
thread = threading.Thread(target=other)
thread.start()
begun.wait()
error = refused("setprofile")
ends.set()
thread.join()
print(json.dumps([error, kept]))
""",
        by=by,
    )
    assert "has the hook of a thread (sys.setprofile)" in error
    assert kept == [True]


@each_monitoring
def test_where_no_engine_is_free_each_tells_who_has_it(way: Way) -> None:
    said = told(
        way,
        """
import sys
for tool in (2, 3, 4):
    sys.monitoring.use_tool_id(tool, f"holder {tool}")
def holds(frame, event, argument):
    pass
sys.setprofile(holds)
ENGINE = "auto"
try:
    traced(lambda: None)
except pystrobe.Error as error:
    sys.setprofile(None)
    print(json.dumps(str(error)))
""",
    )
    assert "engine=" not in said, "as if one had not been tried"
    assert "are taken: holder 3, holder 4, holder 2; and by PyEval_SetProfile: another" in said
    assert "__main__.holds" in said


@each_monitoring
def test_cprofile_begins_and_ends_inside_a_trace(way: Way) -> None:
    said = told(
        way,
        """
import cProfile
def work():
    return sum(range(10))
def profiled():
    theirs = cProfile.Profile()
    theirs.enable()
    work()
    theirs.disable()
    return [entry.callcount for entry in theirs.getstats() if "work" in str(entry.code)]
counts = []
traced(lambda: counts.append(profiled()))
print(json.dumps(counts))
""",
    )
    assert said == [[1]]


# --- evaluators of frames ---

EVALUATOR = """
#include <Python.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030B0000
typedef struct _PyInterpreterFrame Frame;
#else
typedef PyFrameObject Frame;
#endif
static _PyFrameEvalFunction before;
static long evaluated;
static PyObject *code_before, *code_instead;
static PyObject* Evaluate(PyThreadState* thread, Frame* frame, int throws) {
  ++evaluated;
#if PY_VERSION_HEX < 0x030B0000
  if (frame->f_code == (PyCodeObject*)code_before) {
    Py_INCREF(code_instead);
    frame->f_code = (PyCodeObject*)code_instead;
    Py_DECREF(code_before);
  }
#endif
  return before(thread, frame, throws);
}
static PyObject* Set(PyObject* self, PyObject* none) {
  before = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), Evaluate);
  Py_RETURN_NONE;
}
static PyObject* TakeAway(PyObject* self, PyObject* none) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), before);
  Py_RETURN_NONE;
}
static PyObject* Reset(PyObject* self, PyObject* none) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault);
  Py_RETURN_NONE;
}
static PyObject* Replace(PyObject* self, PyObject* codes) {
  return PyArg_ParseTuple(codes, "OO", &code_before, &code_instead) ? PyLong_FromLong(0) : NULL;
}
static PyObject* Count(PyObject* self, PyObject* none) { return PyLong_FromLong(evaluated); }
static PyMethodDef functions[] = {{"set", Set, METH_NOARGS, 0},
                                  {"take_away", TakeAway, METH_NOARGS, 0},
                                  {"reset", Reset, METH_NOARGS, 0},
                                  {"replace", Replace, METH_VARARGS, 0},
                                  {"count", Count, METH_NOARGS, 0},
                                  {0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "evaluator", 0, -1, functions};
PyMODINIT_FUNC PyInit_evaluator(void) { return PyModule_Create(&module); }
"""

each_frame_eval = pytest.mark.parametrize(
    "way", [way for way in ways() if way.engine == "frame-eval"], ids=name_of_way
)


@pytest.fixture(scope="module")
def evaluators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluators")


def with_evaluator(way: Way, evaluators: Path, code: str) -> object:
    """What the code prints, which has a module `evaluator`."""
    place = evaluators / way.by.name
    if not place.exists():
        ask = "import sysconfig; print(sysconfig.get_path('include'))"
        include = subprocess.run(
            [*way.by.command, "-c", ask], capture_output=True, text=True, check=True
        ).stdout.strip()
        if not Path(include, "Python.h").exists():
            pytest.skip(f"no Python.h of {way.by.name}")
        place.mkdir()
        source = place / "evaluator.c"
        source.write_text(EVALUATOR)
        compiler = [need("cc", "gcc"), "-shared", "-fPIC", f"-I{include}"]
        subprocess.run([*compiler, str(source), "-o", str(place / "evaluator.so")], check=True)
    return told(way, f"import sys\nsys.path.append({str(place)!r})\nimport evaluator\n{code}")


FIB = """
def fib(n):
    COUNTS["fib"] += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def calls_and_evaluated(work, **options):
    evaluated = evaluator.count()
    tracer = traced(work, **options)
    return found(tracer, ["fib"])["fib"], evaluator.count() - evaluated >= 177, tracer.trouble
"""


@each_frame_eval
def test_an_evaluator_from_before_goes_on(way: Way, evaluators: Path) -> None:
    said = with_evaluator(
        way,
        evaluators,
        f"""{FIB}
evaluator.set()
during = calls_and_evaluated(lambda: fib(10))
evaluated = evaluator.count()
fib(10)
print(json.dumps([during, evaluator.count() - evaluated]))
""",
    )
    assert said == [[177, True, ""], 177]


@each_frame_eval
def test_an_evaluator_may_come_and_go(way: Way, evaluators: Path) -> None:
    said = with_evaluator(
        way,
        evaluators,
        f"""{FIB}
def work():
    fib(3)
    evaluator.set()
    fib(10)
    evaluator.take_away()
    fib(3)
print(json.dumps([calls_and_evaluated(work), calls_and_evaluated(work)]))
""",
    )
    assert said == [[177 + 2 * 5, True, ""]] * 2


@each_frame_eval
def test_once_the_interpreter_evaluates_itself_again_so_do_we(way: Way, evaluators: Path) -> None:
    said = with_evaluator(
        way,
        evaluators,
        f"""{FIB}
def work():
    evaluator.set()
    fib(10)
calls_and_evaluated(work)
evaluator.reset()
again = calls_and_evaluated(lambda: fib(10))
evaluator.set()
last = calls_and_evaluated(lambda: fib(10))
evaluator.take_away()  # gives it back to ours, which had it then
third = calls_and_evaluated(lambda: fib(10))
print(json.dumps([again, last, third]))
""",
    )
    assert said == [[177, False, ""], [177, True, ""], [177, False, ""]]


@each_frame_eval
def test_an_evaluator_may_give_a_frame_other_code(way: Way, evaluators: Path) -> None:
    """As the debugger pydevd does with functions that have breakpoints."""
    if way.by.version >= (3, 11):
        pytest.skip("the frame is the interpreter's own")
    said = with_evaluator(
        way,
        evaluators,
        """
def work():
    return 1
def loop():
    for _ in range(10):
        work()
evaluator.set()
instead = work.__code__.replace(co_name="instead")
evaluator.replace(work.__code__, instead)
tracer = traced(loop)
rows = [(row.function, row.calls, row.recursive_calls) for row in tracer.stats()]
print(json.dumps([[row for row in rows if row[0] in ("work", "instead")], tracer.trouble]))
""",
    )
    assert said == [[["work", 10, 0]], ""]


@each_frame_eval
def test_an_evaluator_that_stays_is_left_in_its_place(way: Way, evaluators: Path) -> None:
    said = with_evaluator(
        way,
        evaluators,
        f"""{FIB}
def work():
    evaluator.set()
    fib(10)
first = calls_and_evaluated(work)
try:
    traced(lambda: fib(10))
    refused = ""
except pystrobe.Error as error:
    refused = str(error)
ENGINE = "auto"
second = calls_and_evaluated(lambda: fib(10))
evaluator.take_away()
ENGINE = "frame-eval"
third = found(traced(lambda: fib(10)), ["fib"])["fib"]
print(json.dumps([first, refused, second, third]))
""",
    )
    first, refused, second, third = said  # type: ignore[misc]
    assert first == [177, True, "another frame evaluator was set meanwhile: calls may be missing"]
    assert "another frame evaluator was set over that of an earlier trace" in refused
    assert 'the engine "setprofile"' in refused
    assert second == [177, True, ""]
    assert third == 177
