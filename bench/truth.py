# SPDX-License-Identifier: Apache-2.0
"""Experiments on what a tool says: stacks that cannot be, bias, shares, idle threads."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from math import ceil, sqrt
from statistics import mean

import paths  # noqa: F401  # isort: skip
import tools
from collapsed import Stack
from experiments import Plan, Row, attempt, base_row, cost, request, sample, target
from find import Interpreter
from oracle import Oracle, depth_shares, unevenness
from pystrobe.bench._turns import ToolError


@cache
def oracle_of(name: str, interpreter: Interpreter) -> Oracle:
    return Oracle(name, interpreter.command())


def stacks(plan: Plan) -> list[Row]:
    """The call tower: impossible stacks, rate, cost."""
    rows = []
    for interpreter, tool in plan.pairs():
        for pinned in (True, False):
            for rate in (1000.0, 10000.0):
                row = base_row(interpreter, tool) | {"asked": rate, "pinned": pinned}
                rows.append(attempt(plan, row, one_tower, plan, interpreter, tool, rate, pinned))
    return rows


def one_tower(
    plan: Plan, interpreter: Interpreter, tool: tools.Tool, rate: float, pinned: bool
) -> Row:
    with (
        target(interpreter, "tower", pinned=pinned) as started,
        request(interpreter, started, plan.seconds, rate) as wanted,
    ):
        seen, recording = sample(tool, wanted, started, pinned)
        quality = tools.quality(recording)
    oracle = oracle_of("tower", interpreter)
    functions = oracle.judge(recording.stacks, lines=False)
    lines = oracle.judge(recording.stacks)
    return {
        "delivered": functions.total / seen.recording_s,
        "impossible_percent": 100 * functions.impossible.total() / functions.total,
        "wrong_lines_percent": 100 * lines.impossible.total() / functions.total,
        **cost(seen, functions.total),
        **quality,
    }


LEVELS = 8
#: Chance alone makes a bias of about 1 point of them.
LEAST_DEPTHS = 10_000


def depths(plan: Plan) -> list[Row]:
    """A chain of calls that tells its levels' shares of the time: bias, and what chance makes."""
    rows = []
    for interpreter, tool in plan.pairs_on_all():
        for rate in (1000.0, 10000.0):
            row = base_row(interpreter, tool) | {"asked": rate}
            rows.append(attempt(plan, row, one_chain, plan, interpreter, tool, rate))
    return rows


def one_chain(plan: Plan, interpreter: Interpreter, tool: tools.Tool, rate: float) -> Row:
    seconds = plan.at_least(ceil(LEAST_DEPTHS / rate))
    with target(interpreter, "levels") as started:
        # Only where it ran: looks at a thread that waits for a CPU all find the same.
        with request(interpreter, started, seconds, rate, cpu_time=tool.cpu_mode) as wanted:
            seen, recording = sample(tool, wanted, started)
            quality = tools.quality(recording)
        before, after = started.ready["shares"], started.stop()["shares"]
    truth = [mean(both) for both in zip(before, after, strict=True)]
    outside, *found = depth_shares(recording.stacks, LEVELS - 1)
    if not any(found):
        raise ToolError("no sample in the chain")
    samples = round((1 - outside) * sum(stack.samples for stack in recording.stacks))
    usual, most = chance_points(truth, samples)
    return {
        "samples": samples,
        "bias_points": unevenness([share / sum(found) for share in found], truth),
        "chance_points": usual,
        "chance_most_points": most,
        "truth_points": unevenness(before, after),
        **cost(seen, samples),
        **quality,
    }


def chance_points(truth: Sequence[float], samples: int) -> tuple[float, float]:
    """The bias that so many independent samples have by chance: on average, and that which all but
    one in a hundred stay below. Counts of a thousand are normally distributed nearly enough."""
    draws = random.Random(0)
    biases = []
    for _ in range(2000):
        counts = [draws.gauss(samples * share, sqrt(samples * share)) for share in truth]
        biases.append(unevenness([count / sum(counts) for count in counts], truth))
    return mean(biases), sorted(biases)[len(biases) * 99 // 100]


def shares(plan: Plan) -> list[Row]:
    """50/30/20 of the CPU with sleep in between: worst error in points, by CPU and by wall."""
    rows = []
    for interpreter, tool in plan.pairs_on_all(tools.PLAIN):
        for mode in ("cpu", "wall"):
            row = base_row(interpreter, tool) | {"mode": mode}
            rows.append(attempt(plan, row, one_burn, plan, interpreter, tool, mode))
    return rows


FUNCTIONS = ("burn50", "burn30", "burn20", "nap")
# A round takes 0.15 s; a recording that begins and ends within one is off by up to half of it.
LEAST_BURN_SECONDS = 12


def one_burn(plan: Plan, interpreter: Interpreter, tool: tools.Tool, mode: str) -> Row:
    options = {"cpu_time": mode == "cpu", "all_threads": mode == "wall"}
    seconds = plan.at_least(LEAST_BURN_SECONDS)
    with (
        target(interpreter, "burn", "nap") as started,
        request(interpreter, started, seconds, 1000.0, **options) as wanted,
    ):
        _, recording = sample(tool, wanted, started)
        spent = started.stop()[mode]
    told = {name: below(recording.weighted, name) for name in FUNCTIONS}
    told_total = sum(stack.samples for stack in recording.weighted)
    told_percent = {name: 100 * told[name] / told_total for name in FUNCTIONS}
    truth_percent = {name: 100 * spent[name] / sum(spent.values()) for name in FUNCTIONS}
    return {
        "worst_error_points": max(abs(told_percent[f] - truth_percent[f]) for f in FUNCTIONS),
        "nap_percent": told_percent["nap"],
        "nap_truth_percent": truth_percent["nap"],
    }


def below(stacks: list[Stack], function: str) -> int:
    """What the stacks with this function come to."""
    return sum(
        stack.samples for stack in stacks if any(frame.name == function for frame in stack.frames)
    )


def idle(plan: Plan) -> list[Row]:
    """64 idle threads and a busy one at 100 Hz: cost, and whether the idle ones look idle."""
    return [
        attempt(plan, base_row(interpreter, tool), one_idle, plan, interpreter, tool)
        for interpreter, tool in plan.pairs()
    ]


def one_idle(plan: Plan, interpreter: Interpreter, tool: tools.Tool) -> Row:
    with (
        target(interpreter, "idle") as started,
        request(interpreter, started, plan.seconds, 100.0, all_threads=True) as wanted,
    ):
        seen, recording = sample(tool, wanted, started)
    waiting = below(recording.stacks, "sleeper") + below(recording.stacks, "waiter")
    busy = below(recording.stacks, "main")
    return {
        "busy_samples": busy,
        "idle_threads_seen": waiting / busy if busy else 0.0,
        **cost(seen, waiting + busy),
    }
