# SPDX-License-Identifier: Apache-2.0
"""Makes many code objects, says where they are and which lines they have, and waits.

    code_objects.py [FILE...]        default: a good part of the standard library

First line: {"runtime": ..., "hexversion": ..., "code_type": ...}. Then a line for each code object:
{"address", "name", "file", "lines": "LINExCOUNT ..."}; then "end". Ends with standard input.
"""

import ctypes
import dis
import glob
import json
import os
import sys
import types


def line_starts(code):
    """(first byte, line or None) of every stretch of instructions, in order."""
    if hasattr(code, "co_lines"):
        return [(start, line) for start, end, line in code.co_lines() if end > start]
    return list(dis.findlinestarts(code))


def lines(code):
    starts = line_starts(code)
    size = len(code.co_code)
    ends = [start for start, _ in starts[1:]] + [size]
    runs = []
    if starts and starts[0][0] > 0:
        runs.append([code.co_firstlineno, starts[0][0] // 2])
    for (start, line), end in zip(starts, ends):
        if runs and runs[-1][0] == (line or 0):
            runs[-1][1] += (end - start) // 2
        elif end > start:
            runs.append([line or 0, (end - start) // 2])
    return "".join("{}x{} ".format(line, count) for line, count in runs)


def nested(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in nested(constant):
                yield inner


STRANGE = [
    # Lines far apart, forward and back.
    "def far(x):\n" + "\n" * 70000 + "    return (x +\n" + "\n" * 300 + "      x[0])\n",
    # Many lines in one function, and one line with many instructions.
    "def long():\n" + "".join("    a{0} = a{0}\n".format(i) for i in range(3000)),
    "def wide():\n    return [" + "a + b * c, " * 3000 + "]\n",
    # Code the compiler adds, which has no line or that of another statement.
    "def cleanup():\n  try:\n    with a as b:\n      c()\n  except E as e:\n    d()\n  finally:\n    f()\n",
    "async def waits():\n  async with a as b:\n    async for c in d:\n      yield await c\n",
    "def loop():\n  while True:\n    if a: continue\n    for b in c:\n      if d: break\n      pass\n",
    "class Outer:\n  class Inner:\n    def method(self): return [x for x in self]\n",
    "def \u017e\u00e9\u0436(): pass\ndef \u00e9(): pass\ndef \U0001d518(): pass\n",
]


def sources(paths):
    for path in paths:
        try:
            with open(path, "rb") as file:
                yield file.read(), path
        except OSError:
            pass
    for number, text in enumerate(STRANGE):
        yield text, "<\u5947 {}>".format(number)


def main():
    folder = os.path.dirname(os.__file__)
    paths = sys.argv[1:] or sorted(
        glob.glob(folder + "/*.py") + glob.glob(folder + "/[aejlu]*/*.py")
    )
    kept = []
    for source, path in sources(paths):
        try:
            kept.append(compile(source, path, "exec"))
        except (SyntaxError, ValueError):
            pass
    print(
        json.dumps(
            {
                "runtime": ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")),
                "hexversion": sys.hexversion,
                "code_type": id(types.CodeType),
            }
        )
    )
    for top in kept:
        for code in nested(top):
            answer = {
                "address": id(code),
                "name": getattr(code, "co_qualname", code.co_name),
                "file": code.co_filename,
                "lines": lines(code),
            }
            print(json.dumps(answer))
    print("end", flush=True)
    sys.stdin.read()


main()
