# SPDX-License-Identifier: Apache-2.0
"""The mock driver as a program uses it: what PyTorch is to the real one. For tests of pystrobe.gpu,
in processes of their own, which find tests/mock_cuda as libcuda.so.1."""

from __future__ import annotations

import ctypes

_cuda = ctypes.CDLL("libcuda.so.1")


def begin(device: int = 0) -> None:
    """Has a context on this thread."""
    context = ctypes.c_void_p()
    assert _cuda.cuInit(0) == 0
    assert _cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert _cuda.cuCtxSetCurrent(context) == 0


def make_stream() -> int:
    stream = ctypes.c_void_p()
    assert _cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
    assert stream.value is not None
    return stream.value


def destroy(stream: int) -> None:
    assert _cuda.cuStreamDestroy_v2(ctypes.c_void_p(stream)) == 0


def launch(microseconds: float, stream: int = 0) -> None:
    """A kernel that takes so long."""
    kernel = ctypes.c_void_p()
    name = f"sleep_{microseconds * 1000:.0f}".encode()
    assert _cuda.cuModuleGetFunction(ctypes.byref(kernel), None, name) == 0
    one = (1, 1, 1, 1, 1, 1, 0)
    assert _cuda.cuLaunchKernel(kernel, *one, ctypes.c_void_p(stream), None, None) == 0


def launch_without_frames(count: int) -> None:
    """By a thread that has a state, and no Python frames; returns when that has ended."""
    kernel = ctypes.c_void_p()
    assert _cuda.cuModuleGetFunction(ctypes.byref(kernel), None, b"sleep_5000") == 0
    _cuda.mock_launch_without_frames(kernel, ctypes.c_uint64(count))


def capture(kernels: int) -> int:
    """Launches so many while a stream is captured; the graph that they become."""
    return int(_cupti().mock_cupti_capture(b"node", ctypes.c_uint64(kernels)))


def instantiate(graph: int, kernels: int) -> int:
    """What launches a graph of so many kernels; the graph itself is destroyed."""
    made = _cupti().mock_cupti_instantiate(ctypes.c_uint32(graph), ctypes.c_uint64(kernels))
    _cupti().mock_cupti_destroy_graph(ctypes.c_uint32(graph))
    return int(made)


def launch_graph(graph: int, kernels: int) -> None:
    """Each takes a microsecond."""
    _cupti().mock_cupti_launch_graph(b"node", ctypes.c_uint32(graph), ctypes.c_uint64(kernels))


def _cupti() -> ctypes.CDLL:
    return ctypes.CDLL("libcupti.so.13")


def begin_capture(stream: int) -> int:
    """What the driver returns."""
    return int(_cuda.cuStreamBeginCapture_v2(ctypes.c_void_p(stream), 0))


def end_capture(stream: int) -> int:
    """What the driver returns."""
    graph = ctypes.c_void_p()
    return int(_cuda.cuStreamEndCapture(ctypes.c_void_p(stream), ctypes.byref(graph)))


def synchronize(stream: int = 0) -> None:
    assert _cuda.cuStreamSynchronize(ctypes.c_void_p(stream)) == 0


def is_initialized() -> bool:
    return bool(_cuda.mock_is_initialized())


def fail_next(function: str, result: int) -> None:
    _cuda.mock_fail_next(function.encode(), result)
