#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether what autograd's threads launch stands on the operation whose gradient it makes.
prove_backward.py OUT_DIRECTORY. See run_on_device.sh."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from proving import check, profiled, prove_all
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

AUTOGRAD = "<autograd thread>"
STEPS = 10
results: dict[str, Any] = {}


def often(step: Callable[[], None]) -> None:
    for _ in range(STEPS):
        step()


def backward_works(found: Any) -> list[Any]:
    return [w for w in found.sums if AUTOGRAD in [f.function for f in w.frames]]


def forward_of(work: Any) -> list[Any]:
    """The frames of the operation; none where it is not known."""
    names = [f.function for f in work.frames]
    return list(work.frames[names.index(AUTOGRAD) + 1 :])


def operation_of(work: Any) -> str:
    """That of KERNEL_OF whose gradient it is."""
    own = [f.function for f in reversed(forward_of(work)) if f.function in KERNEL_OF]
    return own[0] if own else "none"


def of_kernel(works: list[Any], operation: str) -> list[Any]:
    return [w for w in works if KERNEL_OF[operation].lower() in w.name.lower()]


# ------------------------------------------------------------ kernels that tell what they are of

# A part of the name of a kernel that only the gradient of this operation launches.
KERNEL_OF = {
    "squash": "tanh_backward",
    "gate": "sigmoid_backward",
    "bend": "GeluBackward",
    "share_out": "softmax",
    "normalise": "layer_norm_grad",
}


def squash(x: Any) -> Any:
    return torch.tanh(x)


def gate(x: Any) -> Any:
    return torch.sigmoid(x)


def bend(x: Any) -> Any:
    return functional.gelu(x)


def share_out(x: Any) -> Any:
    return functional.softmax(x, dim=-1)


def normalise(x: Any) -> Any:
    return functional.layer_norm(x, (x.shape[-1],))


def without_node(x: Any) -> None:
    with torch.no_grad():
        x.abs().max()
    x.data.abs()


OPERATIONS: list[Callable[[Any], Any]] = [squash, gate, bend, share_out, normalise]


def prove_each_operation() -> None:
    x = torch.randn(256, 512, device="cuda", requires_grad=True)

    def step() -> None:
        y = x
        for operation in OPERATIONS:
            y = operation(y)
            without_node(y)
        y[:, 3:].transpose(0, 1).sum().backward()

    step()
    found = profiled(lambda: often(step)).gpu
    works = backward_works(found)
    for operation in OPERATIONS:
        name, kernel = operation.__name__, KERNEL_OF[operation.__name__]
        places = Counter(operation_of(w) for w in of_kernel(works, name))
        check(f"{kernel} is of {name}", set(places) == {name}, places)
    launched = [w for w in found.sums if w.frames and w.frames[-1].function == "without_node"]
    wrong = [w for w in works if "without_node" in [f.function for f in forward_of(w)]]
    check("none is of what has no node", bool(launched) and not wrong, (len(launched), wrong))


# ------------------------------------------------------------------- a model


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(1000, 256)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(3)
        )
        self.head = torch.nn.Linear(256, 1000)

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        x = self.first(x)
        x = self.second(x)
        x = self.third(x)
        return self.head(x)

    def first(self, x: Any) -> Any:
        return self.layers[0](x)

    def second(self, x: Any) -> Any:
        return self.layers[1](x)

    def third(self, x: Any) -> Any:
        return checkpoint(self.layers[2], x, use_reentrant=False)


def works_of_views(profile: Any) -> int:
    """By the ranges in which autograd's threads execute nodes: "...: SelectBackward0, seq = 7"."""
    copies = {n for n in dir(torch._C._functions) if n.endswith("_copy")}
    views = {n.removesuffix("_copy") for n in copies} | {"UnsafeViewBackward0"}
    works = 0
    for one in profile.ranges:
        kind, _, node = one.name.split(",")[0].rpartition(": ")
        if kind.endswith("evaluate_function") and node in views:
            works += sum(stream.works for stream in one.streams)
    return works


def prove_a_model() -> None:
    net, tokens = Net().cuda(), torch.randint(1000, (8, 64), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step() -> None:
        loss = functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def named_by_torch() -> None:
        with torch.autograd.profiler.emit_nvtx():
            often(step)

    step()
    profile = profiled(named_by_torch)
    works = backward_works(profile.gpu)
    count = sum(w.count for w in works)
    known = sum(w.count for w in works if forward_of(w))
    of_views = works_of_views(profile)
    check(
        "all but views have their operation",
        count - known == of_views > 0,
        f"{known} of {count}, {of_views} of views",
    )
    layers: Counter[str] = Counter()
    for work in works:
        for frame in forward_of(work):
            name = frame.function.rsplit(".", 1)[-1]
            if name in ("first", "second", "third"):
                layers[name] += work.count
    check("two equal layers have as many works", layers["first"] == layers["second"], layers)
    results["model"] = {"works": count, "known": known, "views": of_views, "layers": layers}
    found_profile = profiled(lambda: often(step))
    found_profile.save(Path(sys.argv[1]) / "backward.html", mode="gpu")
    found_profile.print(mode="gpu")


def prove_two_threads() -> None:
    """Each has nodes of the same numbers, and neither has the other's."""
    barrier = threading.Barrier(2)

    def one(operation: Callable[[Any], Any]) -> None:
        x = torch.randn(256, 512, device="cuda", requires_grad=True)
        for _ in range(STEPS):
            barrier.wait()
            y = operation(x).sum()
            barrier.wait()
            y.backward()

    def both() -> None:
        threads = [threading.Thread(target=one, args=(run,)) for run in (squash, gate)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # A node that Python knows proves where they have their numbers.
    torch.ones(1, device="cuda", requires_grad=True).sum().backward()
    works = backward_works(profiled(both).gpu)
    for name in ("squash", "gate"):
        places: Counter[str] = Counter()
        for work in of_kernel(works, name):
            places[operation_of(work)] += work.count
        # The first operation of a thread is not told.
        is_right = set(places) <= {name, "none"} and places[name] >= STEPS - 1
        check(f"{KERNEL_OF[name]} is of {name}", is_right, places)


def main() -> int:
    proofs = (prove_each_operation, prove_a_model, prove_two_threads)
    return prove_all(proofs, results, Path(sys.argv[1]) / "backward.json")


if __name__ == "__main__":
    sys.exit(main())
