# SPDX-License-Identifier: Apache-2.0
"""Sampling by signals, from within: every target on every interpreter."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from call_graph import COMPUTED, read_call_graph
from cases import CALL_HEAVY, COLLECTING, Case
from conftest import oracle_of
from find import Interpreter
from oracle import INCOMPLETE
from own_sampling import (
    extension_module,
    library,
    of_the_program,
    outside_its_root,
    sampling_itself,
)
from pystrobe_command import Pystrobe

ENOUGH = 200
MOST_RUNS = 6
NATIVE = Case("native")


def check_possible(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case, seconds: float
) -> None:
    """Samples until there is enough to judge; not one stack may be impossible."""
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    interpreter = outside_its_root(interpreter)
    oracle = oracle_of(case.target, interpreter)
    judged = 0
    with sampling_itself(pystrobe, interpreter, case.target, *case.arguments) as own:
        for _ in range(MOST_RUNS):
            recorded = own.record(seconds, rate=5000)
            verdict = oracle.judge(of_the_program(recorded.collapsed("--idle")))
            quality = recorded.json()["quality"]
            told = f"{verdict.describe()}\n{quality['line']}"
            assert verdict.impossible.total() == verdict.owned_up, told
            assert verdict.owned_up <= 2 + 0.001 * verdict.total, told
            assert quality["incomplete"] > 0 or not verdict.owned_up, told
            assert quality["taken"] + quality["lost"] == quality["deadlines"]
            judged += verdict.total
            if judged >= ENOUGH:
                return
    pytest.fail(f"only {judged} samples: {quality['line']}")


@pytest.mark.each_layout
@pytest.mark.parametrize("case", [*CALL_HEAVY, COLLECTING, NATIVE], ids=lambda case: case.name)
def test_every_stack_is_possible(
    pystrobe: Pystrobe, interpreter: Interpreter, case: Case, briefly: float
) -> None:
    check_possible(pystrobe, interpreter, case, briefly)


# What POSIX or the kernel allows in a handler (signal-safety(7)), or what is a system call and no
# more. pthread_self reads a register, and pthread_getspecific
# memory of the thread's own.
SAFE = {
    *("__errno_location", "clock_gettime", "gettid", "ioctl", "memcmp", "memcpy", "memmove"),
    *("memset", "process_vm_readv", "pthread_getspecific", "pthread_self", "syscall"),
}
# The program's own handler, for a signal that is not ours.
PASSES_ON = {"OnSignal", "PassOn"}
SHIPPED_TOO = pytest.mark.parametrize("of", [library, extension_module])


@SHIPPED_TOO
def test_the_handler_calls_nothing_unsafe(of: Callable[[], Path]) -> None:
    graph = read_call_graph(of())
    handlers = [name for name in graph.calls if "::OnSignal(" in name]
    assert len(handlers) == 1
    outside = set()
    seen = set()
    for caller, callee in graph.reachable(handlers[0], stop=lambda name: name.endswith("@plt")):
        seen.add(callee)
        if callee == COMPUTED:
            assert any(name in caller for name in PASSES_ON), caller
        elif callee.endswith("@plt"):
            outside.add(callee.removesuffix("@plt"))
        else:
            assert "pystrobe::" in callee, f"{caller} calls {callee}"
    assert any("ThreadLook::Take" in name for name in seen)
    assert any("ResumeWalkOver" in name for name in seen)
    assert outside - SAFE == set()
    assert {"process_vm_readv", "clock_gettime"} <= outside


@SHIPPED_TOO
def test_no_symbol_is_looked_up_in_the_handler(of: Callable[[], Path]) -> None:
    """All are when the library is loaded: the dynamic loader takes locks."""
    flags = subprocess.run(
        ["readelf", "--dynamic", str(of())], capture_output=True, text=True, check=True
    ).stdout
    assert "BIND_NOW" in flags


@pytest.mark.each_layout
def test_a_thread_of_c_is_seen_in_the_python_that_it_calls(
    pystrobe: Pystrobe, interpreter: Interpreter
) -> None:
    """Each call has a thread state of its own, and is over before anybody lists it."""
    interpreter = outside_its_root(interpreter)
    built = pystrobe.directory / "c_callbacks.so"
    source = Path(__file__).resolve().parent.parent / "targets" / "c_callbacks.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(built), str(source)], check=True)
    with sampling_itself(pystrobe, interpreter, "c_callbacks", str(built)) as own:
        stacks = of_the_program(own.record(seconds=1, rate=2000).collapsed("--idle"))
    inside = sum(stack.samples for stack in stacks if "burn" in [f.name for f in stack.frames])
    outside = sum(stack.samples for stack in stacks if not stack.frames)
    assert inside > 200
    assert outside > 50, "C's own time is no Python's"
    roots = Counter(
        stack.frames[0].name for stack in stacks for _ in range(stack.samples) if stack.frames
    )
    # One state is just taken down, another set up.
    assert roots.pop(INCOMPLETE, 0) <= 2 + 0.002 * roots.total()
    assert set(roots) <= {"called", "<module>"}
