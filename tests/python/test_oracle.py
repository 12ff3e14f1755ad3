# SPDX-License-Identifier: Apache-2.0
"""The oracle itself: every stack a target really has is possible, and wrong ones are found out."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from cases import ALL, Case
from collapsed import Frame, make_frame
from conftest import oracle_of
from find import Interpreter
from oracle import HERE
from running import copy_targets, inside, visible_directory

pytestmark = pytest.mark.beside_others


def traced_stacks(interpreter: Interpreter, case: Case) -> list[tuple[Frame, ...]]:
    """Every distinct stack of a short run, at every line."""
    directory = visible_directory(interpreter)
    try:
        tracer = directory / "trace_target.py"
        shutil.copy(HERE / "trace_target.py", tracer)
        script = copy_targets(interpreter, directory) / f"{case.target}.py"
        paths = [inside(interpreter, path) for path in (tracer, script)]
        done = subprocess.run(
            interpreter.command("-B", *paths, "0.2", *case.arguments),
            stdout=subprocess.PIPE,
            check=True,
            timeout=60,
        )
    finally:
        shutil.rmtree(directory)
    stacks = json.loads(done.stdout.splitlines()[-1])
    return [tuple(make_frame(*frame) for frame in stack) for stack in stacks]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_real_stacks_are_possible(newest: Interpreter, case: Case) -> None:
    check_real_stacks(newest, case)


@pytest.mark.matrix
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_real_stacks_are_possible_everywhere(interpreter: Interpreter, case: Case) -> None:
    check_real_stacks(interpreter, case)


def check_real_stacks(interpreter: Interpreter, case: Case) -> None:
    if not case.runs_on(interpreter):
        pytest.skip(f"{case.target} needs Python {case.since}")
    oracle = oracle_of(case.target, interpreter)
    stacks = traced_stacks(interpreter, case)
    assert len(stacks) > 5
    reasons = {oracle.why_impossible(stack): stack for stack in stacks}
    assert set(reasons) == {None}, reasons


def test_wrong_stacks_are_found_out(newest: Interpreter) -> None:
    oracle = oracle_of("alternating", newest)
    right = next(
        stack
        for stack in traced_stacks(newest, Case("alternating"))
        if [frame.name for frame in stack[-2:]] == ["hot_a", "leaf_a"]
    )
    hot, leaf = right[-2:]
    wrong = {
        "root": right[1:],
        "cut": right[:1] + right[-1:],
        "foreign callee": (*right[:-1], leaf._replace(name="leaf_b")),
        "line of the caller": (*right[:-2], hot._replace(line=hot.line - 1), leaf),
        "line outside": (*right[:-1], leaf._replace(line=9999)),
        "unknown function": (*right, Frame("nobody", "alternating.py", 3)),
        "unknown file": (*right, Frame("leaf_a", "elsewhere.py", 3)),
        "twice": (*right, leaf),
        "empty": (),
    }
    assert oracle.why_impossible(right) is None
    for what, stack in wrong.items():
        assert oracle.why_impossible(stack) is not None, what


def test_tower_has_one_parent_per_node(newest: Interpreter) -> None:
    oracle = oracle_of("tower", newest)
    stack = max(traced_stacks(newest, Case("tower")), key=len)
    assert sum(frame.name.startswith("node_") for frame in stack) == 8
    leaf = stack[-1]
    cousin = leaf._replace(name="node_200" if leaf.name != "node_200" else "node_201")
    assert oracle.why_impossible((*stack[:-1], cousin)) is not None
