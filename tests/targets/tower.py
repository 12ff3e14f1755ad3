# SPDX-License-Identifier: Apache-2.0
"""A binary tree of distinct functions, each of which calls one of its two children.

Every descent takes one function per level, so that each level but the last costs the same, and a
caller with a callee that is not its child is seen at once.

A level takes some 80 ns. For a second or so now and then any tool, also one that stops the thread
by ptrace, finds the outer levels twice as often as the inner ones, although timing towers of each
depth shows them alike: so fine, it seems, a processor does not let itself be interrupted just
anywhere. What share of the samples each depth should have is better asked of levels.py.
"""

import control

DEPTH = 7
FILE_NAME = "tower_generated.py"


def tower_source():
    """The functions of the tower: node_0 is the root, node_I calls node_2I+1 or node_2I+2."""
    lines = []
    for node in range(2 ** (DEPTH + 1) - 1):
        lines.append("def node_%d(path):" % node)
        if node >= 2**DEPTH - 1:
            lines.append("    return path")
            continue
        left, right = ("node_%d" % (2 * node + side) for side in (1, 2))
        lines.append("    if path & 1:")
        lines.append("        return %s(path >> 1)  # -> %s" % (right, right))
        lines.append("    return %s(path >> 1)  # -> %s" % (left, left))
    return "\n".join(lines) + "\n"


def sources():
    return [(FILE_NAME, tower_source())]


def compile_tower():
    namespace = {}
    exec(compile(tower_source(), FILE_NAME, "exec"), namespace)
    return namespace["node_0"]


def descend(root, rounds):
    for _ in range(rounds):
        for path in range(256):
            root(path)  # -> node_0


def main():
    root = compile_tower()
    control.ready()  # -> ready
    while control.running:
        descend(root, 4)  # -> descend
        control.progress[0] += 1024


if __name__ == "__main__":
    main()  # -> main
