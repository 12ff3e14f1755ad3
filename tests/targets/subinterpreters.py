# SPDX-License-Identifier: Apache-2.0
"""Two sub-interpreters, each run by a thread of its own, beside a busy main interpreter."""

import threading

import control

FILE_NAMES = ("<string>", "<script>")  # by version


def script(k):
    lines = [
        "def leaf_%d(n):" % k,
        "    return n + %d" % k,
        "",
        "def branch_%d(n):" % k,
        "    return leaf_%d(n) + leaf_%d(n)  # -> leaf_%d" % (k, k, k),
        "",
        "while True:",
        "    for _ in range(1000):",
        "        branch_%d(3)  # -> branch_%d" % (k, k),
    ]
    return "\n".join([""] * (k * 20) + lines) + "\n"


def sources():
    return [(file, script(k)) for file in FILE_NAMES for k in (1, 2)]


def start():
    """How to make and run one, by version: returns (create, run)."""
    try:
        from concurrent import interpreters  # 3.14+

        return interpreters.create, lambda made, text: made.exec(text)  # -> __init__.py
    except ImportError:
        pass
    try:
        import _interpreters  # 3.13

        return _interpreters.create, _interpreters.exec
    except ImportError:
        import _xxsubinterpreters  # 3.8-3.12

        return _xxsubinterpreters.create, _xxsubinterpreters.run_string


def run_script(run, made, text):  # entry
    run(made, text)  # -> <lambda>


def main_leaf(n):
    return n - 1


def main_branch(n):
    return main_leaf(n) * main_leaf(n)  # -> main_leaf


def main():
    create, run = start()
    for k in (1, 2):
        made = create()
        worker = threading.Thread(
            target=run_script, args=(run, made, script(k)), name="sub-%d" % k, daemon=True
        )
        worker.start()
    control.ready()  # -> ready
    while control.running:
        for n in range(1000):
            main_branch(n)  # -> main_branch
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
