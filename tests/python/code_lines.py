# SPDX-License-Identifier: Apache-2.0
"""Run by a target's interpreter: which lines each code object of its sources can be on.

stdin: JSON {"sources": [[file, text], ...], "modules": [name, ...]}.
stdout: JSON [[file, name, qualified name, first line, [lines]], ...]; files by their last part.
"""

import contextlib
import dis
import importlib
import json
import sys


def lines_of(code):
    lines = {code.co_firstlineno}
    if hasattr(code, "co_lines"):
        # Some instructions belong to no line (None): cleaning up after an exception, for instance.
        lines.update(line or 0 for _, _, line in code.co_lines())
    else:
        lines.update(line for _, line in dis.findlinestarts(code) if line)
    return sorted(lines)


def visit(code, file, out):
    qualified = getattr(code, "co_qualname", code.co_name)
    out.append([file, code.co_name, qualified, code.co_firstlineno, lines_of(code)])
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            visit(constant, file, out)


def source_files(names):
    for name in names:
        with contextlib.suppress(ImportError):  # a module that other versions have
            importlib.import_module(name)
    packages = {name.split(".")[0] for name in names}
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and path.endswith(".py") and name.split(".")[0] in packages:
            yield path


def main():
    request = json.load(sys.stdin)
    out = []
    for file, text in request["sources"]:
        visit(compile(text, file, "exec"), file, out)
    for path in source_files(request["modules"]):
        with open(path, encoding="utf-8") as source:
            visit(compile(source.read(), path, "exec"), path.rsplit("/", 1)[-1], out)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
