# SPDX-License-Identifier: Apache-2.0
"""Code made by exec and dropped, so that new code objects lie where old ones were.

Each generation has names, a file name and line numbers of its own: a stale cache entry shows.
"""

import control

GENERATIONS = 60


def generation_source(k):
    lines = [""] * (k * 5)
    lines += [
        "def inner_%02d(n):" % k,
        "    total = 0",
        "    for i in range(n):",
        "        total += i",
        "    return total",
        "",
        "def outer_%02d(n):  # entry" % k,
        "    return inner_%02d(n) + inner_%02d(n)  # -> inner_%02d" % (k, k, k),
    ]
    return "\n".join(lines) + "\n"


def generation_file(k):
    return "churn_%02d.py" % k


def sources():
    return [(generation_file(k), generation_source(k)) for k in range(GENERATIONS)]


def run_generation(k, file, text):
    namespace = {}
    exec(compile(text, file, "exec"), namespace)  # -> churn_*.py
    outer = namespace["outer_%02d" % k]
    for _ in range(40):
        outer(300)  # -> churn_*.py


def main():
    generations = sources()
    control.ready()  # -> ready
    while control.running:
        for k, (file, text) in enumerate(generations):
            run_generation(k, file, text)  # -> run_generation
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
