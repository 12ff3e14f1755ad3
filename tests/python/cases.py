# SPDX-License-Identifier: Apache-2.0
"""Which targets are profiled with which arguments, and which interpreters can run them."""

from __future__ import annotations

from dataclasses import dataclass

from find import Interpreter


@dataclass(frozen=True)
class Case:
    """A target with arguments."""

    target: str
    arguments: tuple[str, ...] = ()
    since: tuple[int, int] = (3, 8)  # the first Python that has what it needs

    @property
    def name(self) -> str:
        return "-".join([self.target, *self.arguments])

    def runs_on(self, interpreter: Interpreter) -> bool:
        return interpreter.minor >= self.since


CALL_HEAVY = [
    Case("tower"),
    Case("alternating"),
    Case("awaits"),
    Case("callbacks"),
    Case("codechurn"),
    Case("deep", ("20", "moving")),
    Case("deep", ("200", "moving")),
    Case("deep", ("3000", "moving")),
    Case("exceptions"),
    Case("generators"),
    Case("recursion"),
    Case("short_code"),
    Case("subinterpreters", since=(3, 12)),
    Case("threadchurn"),
    Case("threads"),
    Case("wrappers"),
]
# The collector interrupts it with finalizers, wherever it is.
COLLECTING = Case("collecting")
QUIET = [
    Case("burn"),
    Case("deep", ("800",)),
    Case("idle"),
    Case("lifecycle", ("none", "0")),
    Case("native"),
]
ALL = [*CALL_HEAVY, *QUIET]
