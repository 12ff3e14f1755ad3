# SPDX-License-Identifier: Apache-2.0
"""A binary tree of distinct functions, each of which calls one of its two children.

Every descent takes one function per level, so that each level but the last costs the same, and a
caller with a callee that is not its child is seen at once. Truth: the cost of a level is the slope
of the time of towers 0 to DEPTH levels high.
"""

import sys
import time

import control

DEPTH = 7
FILE_NAME = "tower_generated.py"


def tower_source(depth, prefix="node"):
    """The functions of a tower: node_0 is the root, node_I calls node_2I+1 or node_2I+2."""
    lines = []
    for node in range(2 ** (depth + 1) - 1):
        lines.append("def %s_%d(path):" % (prefix, node))
        if node >= 2**depth - 1:
            lines.append("    return path")
            continue
        left, right = ("%s_%d" % (prefix, 2 * node + side) for side in (1, 2))
        lines.append("    if path & 1:")
        lines.append("        return %s(path >> 1)  # -> %s" % (right, right))
        lines.append("    return %s(path >> 1)  # -> %s" % (left, left))
    return "\n".join(lines) + "\n"


def sources():
    return [(FILE_NAME, tower_source(DEPTH))]


def compile_tower(depth, prefix="node"):
    namespace = {}
    exec(compile(tower_source(depth, prefix), FILE_NAME, "exec"), namespace)
    return namespace[prefix + "_0"]


def descend(root, rounds):
    for _ in range(rounds):
        for path in range(256):
            root(path)  # -> node_0


def loop_only(rounds):
    for _ in range(rounds):
        for _ in range(256):
            pass


def best_time(function, *arguments):
    best = float("inf")
    for _ in range(7):
        begin = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - begin)
    return best


def calibrate():
    """Shares of the time outside the tower and at each level."""
    rounds = 200
    towers = [compile_tower(depth, "calibration") for depth in range(DEPTH + 1)]
    for root in towers:
        descend(root, 20)
    outside = best_time(loop_only, rounds)
    times = [best_time(descend, root, rounds) for root in towers]
    heights = range(DEPTH + 1)
    middle = sum(heights) / len(heights)
    mean = sum(times) / len(times)
    level = sum((h - middle) * (t - mean) for h, t in zip(heights, times))
    level /= sum((h - middle) ** 2 for h in heights)
    # The price of a call is shared by caller and callee: of the two ends only the sum is sure.
    lowest = max(mean - level * middle - outside, 0.0)
    total = outside + level * DEPTH + lowest
    return [outside / total] + [level / total] * DEPTH + [lowest / total]


def main():
    shares = calibrate() if "--truth" in sys.argv else None
    root = compile_tower(DEPTH)
    control.ready(shares=shares)  # -> ready
    while control.running:
        descend(root, 4)  # -> descend
        control.progress[0] += 1024


if __name__ == "__main__":
    main()  # -> main
