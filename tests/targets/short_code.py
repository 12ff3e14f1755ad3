# SPDX-License-Identifier: Apache-2.0
"""Code as imports bring it: unmarshalled, run once for tens of microseconds, and gone."""

import marshal

import control

MODULES = 50
TEXT = """total = 0
for i in range(400):
    total += i
"""


def sources():
    return [("module_%02d.py" % k, TEXT) for k in range(MODULES)]


def main():
    modules = [marshal.dumps(compile(text, file, "exec")) for file, text in sources()]
    control.ready()  # -> ready
    while control.running:
        for module in modules:
            exec(marshal.loads(module), {})  # -> module_*.py
        control.progress[0] += 1


if __name__ == "__main__":
    main()  # -> main
