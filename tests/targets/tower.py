# SPDX-License-Identifier: Apache-2.0
"""A binary tree of distinct functions, each of which calls one of its two children.

Every descent takes one function per level, so that each level but the last costs the same, and a
caller with a callee that is not its child is seen at once. Truth: what a tower of DEPTH levels
takes beyond one of none, shared by the levels.

A level takes some 80 ns. For a second or so now and then any tool, also one that stops the thread
by ptrace, finds the outer levels twice as often as the inner ones, although timing towers of each
depth shows them alike: so fine, it seems, a processor does not let itself be interrupted just
anywhere. `--work N` makes each level longer than that by N turns of a loop.

Processes differ: in some the outermost level takes up to twice as long as each of the others
while the process lives, by the descents that it does in a second and by any tool alike.
"""

import argparse
import time

import control

DEPTH = 7
FILE_NAME = "tower_generated.py"


def tower_source(depth, prefix="node", work=0):
    """The functions of a tower: node_0 is the root, node_I calls node_2I+1 or node_2I+2."""
    lines = []
    for node in range(2 ** (depth + 1) - 1):
        lines.append("def %s_%d(path):" % (prefix, node))
        if node >= 2**depth - 1:
            lines.append("    return path")
            continue
        if work:
            lines += ["    for _ in range(%d):" % work, "        pass"]
        left, right = ("%s_%d" % (prefix, 2 * node + side) for side in (1, 2))
        lines.append("    if path & 1:")
        lines.append("        return %s(path >> 1)  # -> %s" % (right, right))
        lines.append("    return %s(path >> 1)  # -> %s" % (left, left))
    return "\n".join(lines) + "\n"


def sources():
    return [(FILE_NAME, tower_source(DEPTH))]


def compile_tower(depth, prefix="node", work=0):
    namespace = {}
    exec(compile(tower_source(depth, prefix, work), FILE_NAME, "exec"), namespace)
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


def calibrate(work):
    """Shares of the time outside the tower and at each level.

    The price of a call is shared by caller and callee: of the two ends only the sum is sure.
    """
    rounds = 200
    lowest, highest = (compile_tower(depth, "calibration", work) for depth in (0, DEPTH))
    for root in (lowest, highest):
        descend(root, 20)
    outside = best_time(loop_only, rounds)
    ends = max(best_time(descend, lowest, rounds), outside)
    total = best_time(descend, highest, rounds)
    level = (total - ends) / DEPTH
    return [outside / total] + [level / total] * DEPTH + [(ends - outside) / total]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--work", type=int, default=0)
    options = parser.parse_args()
    shares = calibrate(options.work) if options.truth else None
    root = compile_tower(DEPTH, work=options.work)
    control.ready(shares=shares)  # -> ready
    while control.running:
        descend(root, 4)  # -> descend
        control.progress[0] += 1024


if __name__ == "__main__":
    main()  # -> main
