# SPDX-License-Identifier: Apache-2.0
"""Where the operations were called whose gradients autograd's threads make."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from gpu_traced import traced
from on_mock_gpu import HERE, MOCK
from own_interpreters import Own
from pystrobe import read as pystrobe_read
from pystrobe_command import Pystrobe

pytestmark = pytest.mark.beside_others

PROGRAM = """
import mock_torch
from mock_torch import backward, no_grad, operation

def layer(*arguments):
    return operation(*arguments)

def elsewhere():
    t.launch(5)

def found(profile):
    return [[path, count] for path, _, count, _ in works(profile)
            if "<autograd thread>" in path]
"""
IN_BACKWARD = ["<module>", "backward", "<autograd thread>"]
IN_LAYER = ["<module>", "layer", "operation", "launch"]


def found(program: str, own: Own | None = None) -> Any:
    whole = PROGRAM + textwrap.dedent(program)
    return traced(whole, own) if own else traced(whole)


def test_a_gradient_has_the_path_of_its_operation(own: Own) -> None:
    assert found(
        """
        mock_torch.install()
        with pystrobe.Profiler(mode="gpu") as profiler:
            backward(layer(), layer("Mul", 2))
        print(json.dumps(found(profiler.profile)))
        """,
        own,
    ) == [[IN_BACKWARD + IN_LAYER, 6]]


def test_what_has_no_node_has_not_the_path_of_the_last_one() -> None:
    assert found(
        """
        mock_torch.install()
        with pystrobe.Profiler(mode="gpu") as profiler:
            tensor = layer()
            elsewhere()
            backward(tensor)
        print(json.dumps(found(profiler.profile)))
        """
    ) == [[IN_BACKWARD + IN_LAYER, 3]]


@pytest.mark.parametrize("kind", ["Select", "CopySlices"])
def test_of_an_operation_that_may_launch_nothing_nothing_is_said(kind: str) -> None:
    assert found(
        f"""
        mock_torch.install()
        with pystrobe.Profiler(mode="gpu") as profiler:
            tensor = layer("{kind}", 0)
            elsewhere()
            backward(layer(), tensor)
        print(json.dumps(sorted(found(profiler.profile))))
        """
    ) == [[IN_BACKWARD, 3], [IN_BACKWARD + IN_LAYER, 3]]


def test_what_makes_no_nodes_is_of_none() -> None:
    assert found(
        """
        mock_torch.install()
        with pystrobe.Profiler(mode="gpu") as profiler:
            tensor = layer("Mul", 0)
            with no_grad():
                elsewhere()
            backward(layer(), tensor)
        print(json.dumps(sorted(found(profiler.profile))))
        """
    ) == [[IN_BACKWARD, 3], [IN_BACKWARD + IN_LAYER, 3]]


def test_nodes_are_not_read_where_pytorch_has_them_in_another_way() -> None:
    assert found(
        """
        mock_torch.install()
        mock_torch.Node.said = 7
        with pystrobe.Profiler(mode="gpu") as profiler:
            backward(layer())
        print(json.dumps(found(profiler.profile)))
        """
    ) == [[IN_BACKWARD, 3]]


def test_an_operation_of_before_is_not_known() -> None:
    assert found(
        """
        mock_torch.install()
        with pystrobe.Profiler(mode="gpu"):
            tensor = layer()
        with pystrobe.Profiler(mode="gpu") as profiler:
            elsewhere()
            backward(tensor)
        print(json.dumps(found(profiler.profile)))
        """
    ) == [[IN_BACKWARD, 3]]


def test_threads_that_count_alike_have_nodes_of_their_own() -> None:
    assert found(
        """
        mock_torch.install()

        def first():
            t.begin()
            operation()
            results.append(operation())

        def second():
            t.begin()
            mock_torch.be_thread(2)
            operation()
            results.append(operation())

        results = []
        with pystrobe.Profiler(mode="gpu") as profiler:
            for run in (first, second):
                thread = threading.Thread(target=run)
                thread.start()
                thread.join()
            numbers = {tensor.grad_fn._sequence_nr() for tensor in results}
            # One that this thread made proves where they are.
            backward(operation(), *results)
        ends = sorted(path[-3:-1] for path, _ in found(profiler.profile))
        print(json.dumps([list(numbers), ends]))
        """
    ) == [[1], [["<module>", "operation"], ["first", "operation"], ["second", "operation"]]]


def test_one_behind_an_operation_in_python_proves_where_nodes_are() -> None:
    assert found(
        """
        mock_torch.install()
        with pystrobe.Profiler(mode="gpu") as profiler:
            tensor = layer()
            backward(mock_torch.Tensor(mock_torch.PythonNode(tensor.grad_fn)))
        print(json.dumps(found(profiler.profile)))
        """
    ) == [[IN_BACKWARD + IN_LAYER, 3]]


def test_a_tensor_that_fails_does_not_make_the_backward_pass_fail() -> None:
    assert (
        found(
            """
        mock_torch.install()

        class Fails:
            @property
            def grad_fn(self):
                raise RuntimeError

        class Odd:
            class grad_fn:
                next_functions = 7
                def _sequence_nr():
                    return "seven"

        mock_torch.Engine.run_backward = lambda self, tensors: t.launch_without_frames(1)
        with pystrobe.Profiler(mode="gpu") as profiler:
            for tensors in ((Fails(),), (Odd(),), 7, None):
                mock_torch.Variable._execution_engine.run_backward(tensors)
        print(json.dumps(profiler.profile.gpu.quality.records))
        """
        )
        == 4
    )


def test_where_two_wait_for_autograd_the_operation_is_known_all_the_same() -> None:
    assert found(
        """
        mock_torch.install()
        def enter():
            return pystrobe._core.gpu_enter_backward()
        with pystrobe.Profiler(mode="gpu") as profiler:
            entered = enter()
            backward(layer())
            pystrobe._core.gpu_leave_backward(entered)
        print(json.dumps(found(profiler.profile)))
        """
    ) == [[["<autograd thread>", *IN_LAYER], 3]]


@pytest.mark.parametrize("verb", ["run", "trace"])
def test_a_program_imports_pytorch_later(verb: str, pystrobe: Pystrobe, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "import sys, mock_torch\nvars(sys.modules[__name__]).update(vars(mock_torch.module()))\n"
    )
    script, recording = tmp_path / "a.py", tmp_path / "a.strobe"
    script.write_text(
        textwrap.dedent(
            """
            import gpu_program as t
            t.begin()
            import torch
            from mock_torch import Variable, backward, operation

            def layer():
                return operation()

            backward(layer())
            """
        )
    )
    variables = {**os.environ, "PYTHONPATH": str(HERE), "LD_LIBRARY_PATH": str(MOCK)}
    arguments = ("--gpu", "--python", sys.executable, "-o", str(recording))
    pystrobe.succeed(verb, *arguments, str(script), env=variables)
    gpu = pystrobe_read(str(recording), mode="gpu").gpu
    assert gpu is not None
    paths = [[frame.function for frame in work.frames] for work in gpu.sums]
    assert IN_BACKWARD + IN_LAYER in paths
