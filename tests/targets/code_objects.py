# SPDX-License-Identifier: Apache-2.0
"""Makes many code objects, says where they are and which lines they have, and waits.

    code_objects.py [FILE...]        default: a good part of the standard library

First line: {"runtime": ..., "hexversion": ..., "code_type": ...}. Then a line for each code object:
{"address", "name", "file", "lines": "LINExCOUNT ..."}; then "end". Ends with standard input.
"""

import contextlib
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
    return "".join(f"{line}x{count} " for line, count in runs)


def nested(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


CLEANUP = """
def cleanup():
  try:
    with a as b:
      c()
  except E as e:
    d()
  finally:
    f()
async def waits():
  async with a as b:
    async for c in d:
      yield await c
def loop():
  while True:
    if a: continue
    for b in c:
      if d: break
      pass
class Outer:
  class Inner:
    def method(self): return [x for x in self]
"""

STRANGE = [
    # Lines far apart, forward and back.
    "def far(x):\n" + "\n" * 70000 + "    return (x +\n" + "\n" * 300 + "      x[0])\n",
    # Many lines in one function, and one line with many instructions.
    "def long():\n" + "".join(f"    a{i} = a{i}\n" for i in range(600)),
    "def wide():\n    return [" + "a + b * c, " * 600 + "]\n",
    # Code the compiler adds, which has no line or that of another statement.
    CLEANUP,
    "def \u017e\u00e9\u0436(): pass\ndef \u00e9(): pass\ndef \U0001d518(): pass\n",
]


class FileName(str):
    __slots__ = ()


def sources(paths):
    for path in paths:
        try:
            with open(path, "rb") as file:
                yield file.read(), path
        except OSError:
            pass
    for number, text in enumerate(STRANGE):
        yield text, FileName(f"<of a subclass {number}>")
        yield text, f"<\u5947 {number}>"


def main():
    folder = os.path.dirname(os.__file__)
    paths = sys.argv[1:] or sorted(
        glob.glob(folder + "/*.py") + glob.glob(folder + "/asyncio/*.py")
    )
    kept = []
    for source, path in sources(paths):
        with contextlib.suppress(SyntaxError, ValueError):
            kept.append(compile(source, path, "exec"))
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
