# SPDX-License-Identifier: Apache-2.0
"""What of PyTorch pystrobe looks at, on the libraries of tests/mock_torch, and where ``torch`` is
asked for: in programs of the tests, beside gpu_program. An operation makes a node and launches a
kernel, as PyTorch's do; a backward pass is of a thread without Python frames."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, ClassVar

import gpu_program

_torch = ctypes.CDLL("libtorch_cpu.so")
_c10 = ctypes.CDLL("libc10.so")
_torch.mock_torch_make.restype = ctypes.c_uint64
_torch.mock_torch_sequence.restype = ctypes.c_uint64
_torch.mock_torch_node.restype = ctypes.c_void_p
_HEAD = object.__basicsize__
# It would take what is in the slots of a Node for objects.
gc.disable()


class Node:
    """As PyTorch's in Python: behind its head where it is in C++, and who counts its users."""

    __slots__ = ("in_cpp", "users")
    all: ClassVar[list[Node]] = []
    # What each tells; one that is not right is not believed.
    said: ClassVar[int | None] = None
    next_functions = ()

    def __init__(self, kind: str) -> None:
        place = _torch.mock_torch_make(kind.encode())
        node = ctypes.c_void_p(_torch.mock_torch_node(ctypes.c_uint64(place)))
        ctypes.memmove(id(self) + _HEAD, ctypes.byref(node), ctypes.sizeof(node))
        assert place == len(Node.all)
        Node.all.append(self)

    def place(self) -> ctypes.c_uint64:
        return ctypes.c_uint64(Node.all.index(self))

    def _sequence_nr(self) -> int:
        if Node.said is not None:
            return Node.said
        return int(_torch.mock_torch_sequence(self.place()))


class PythonNode:
    """Of an operation that is written in Python."""

    def __init__(self, node: Node) -> None:
        self.next_functions = ((None, 0), (node, 0))

    def _sequence_nr(self) -> int:
        return 3


@atexit.register
def _forget() -> None:
    """They are no objects of Python's that the slots have."""
    for node in Node.all:
        ctypes.memset(id(node) + _HEAD, 0, ctypes.sizeof(ctypes.c_void_p))


class Tensor:
    def __init__(self, grad_fn: Any) -> None:
        self.grad_fn = grad_fn


def operation(kind: str = "Mul", launches: int = 1) -> Tensor:
    tensor = Tensor(Node(kind))
    for _ in range(launches):
        gpu_program.launch(5)
    return tensor


@contextlib.contextmanager
def no_grad() -> Iterator[None]:
    _c10.mock_torch_set_grad(0)
    yield
    _c10.mock_torch_set_grad(1)


def be_thread(number: int) -> None:
    """The calling thread is of this number from now on."""
    _torch.mock_torch_set_thread(ctypes.c_uint64(number))


class Engine:
    def run_backward(self, tensors: Iterable[Tensor], launches: int = 3) -> None:
        """Of these alone, the last one first."""
        for tensor in reversed(list(tensors)):
            node = tensor.grad_fn
            if isinstance(node, PythonNode):
                node = node.next_functions[1][0]
            _torch.mock_torch_run(node.place())
            gpu_program.launch_without_frames(launches)
        _torch.mock_torch_run_none()


class Variable:
    _execution_engine: Any = Engine()


def backward(*tensors: Tensor) -> None:
    Variable._execution_engine.run_backward(tensors)


def module() -> ModuleType:
    """``torch``, which every view has twice."""
    torch: Any = ModuleType("torch")
    torch.autograd = ModuleType("torch.autograd")
    torch.autograd.Variable = Variable
    torch._C = ModuleType("torch._C")
    torch._C._functions = ModuleType("torch._C._functions")
    for name in ("MulBackward0", "SelectBackward0", "SelectBackward0_copy"):
        setattr(torch._C._functions, name, Node)
    result: ModuleType = torch
    return result


def install() -> None:
    sys.modules["torch"] = module()
