# SPDX-License-Identifier: Apache-2.0
"""A chain of functions, each of which does the same work and calls the next. Truth: the shares of
their time, as the program's own clock has them for a second before it is watched and one after it,
or for as many as are the only argument.

Each function looks at the clock as it begins, so that a function's time goes from one look to the
next: what of its own beginning it misses, it has of the next one's. Only that of the last is put
together of more looks. While nobody watches, what each took is added up, except in descents in
which the thread lost its CPU. While somebody does, the looks stay but are not added up: the time
that watching takes would be in them.

A function takes about a microsecond. Against that, what a call costs more at one level than at
another, in some processes, is little, and it is in the truth. The work counts no further than to
256: integers beyond are made anew.
"""

import sys
import time

import control

DEPTH = 7
WORK = 200
now = time.perf_counter_ns
#: Beginnings of the levels, then twice the end of the last one's work, and that of the descent.
looks = [0] * (DEPTH + 4)


def chain_source():
    lines = []
    for level in range(DEPTH + 1):
        lines.append("def node_%d():" % level)
        lines.append("    looks[%d] = now()" % level)
        lines += ["    for _ in range(%d):" % WORK, "        pass"]
        if level < DEPTH:
            lines.append("    node_%d()" % (level + 1))
    lines += ["    looks[%d] = now()" % number for number in (DEPTH + 1, DEPTH + 2)]
    return "\n".join(lines) + "\n"


def compile_chain():
    namespace = {"looks": looks, "now": now}
    exec(compile(chain_source(), "levels_generated.py", "exec"), namespace)
    return namespace["node_0"]


def descend(root, times):
    for _ in range(times):
        root()


def looks_of_descents(root, times):
    """Of each descent its looks, but of those that took twice as long as others or more."""
    descents = []
    for _ in range(times):
        root()
        looks[-1] = now()
        descents.append(looks[:])
    longest = 2 * min(descent[-1] - descent[0] for descent in descents)
    return [descent for descent in descents if descent[-1] - descent[0] < longest]


def shares_of_levels(root, seconds):
    sums = [0] * (len(looks) - 1)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for descent in looks_of_descents(root, 200):
            for number in range(len(sums)):
                sums[number] += descent[number + 1] - descent[number]
    *levels, look, returns = sums
    # Its own two looks beyond those that bound its work.
    levels[-1] += 2 * look
    spent = [level + max(0, returns - look) / len(levels) for level in levels]
    return [level / sum(spent) for level in spent]


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    root = compile_chain()
    shares_of_levels(root, 0.2)  # the interpreter specialises what it runs
    control.ready(shares=shares_of_levels(root, seconds))
    while control.running:
        descend(root, 200)
        control.progress[0] += 200
    control.truth(shares=shares_of_levels(root, seconds))


if __name__ == "__main__":
    main()
