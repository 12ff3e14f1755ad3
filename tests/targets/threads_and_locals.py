# SPDX-License-Identifier: Apache-2.0
"""Threads that stand still inside functions with variables of every kind, and what is true of them.

First line: {"runtime": ..., "hexversion": ..., "code_type": ...}. Then, as JSON on one line each,
{"names": {ident: name}}, and for each thread {"ident", "frames": [[name, file, line], ...] leaf
first, "locals": {function: [[kind, name, value], ...]}}; then "end". Ends with standard input.
"""

# ruff: noqa: F841

import ctypes
import json
import sys
import threading
import time
import types

release = threading.Event()
truth = {}


class Plain:
    class Inner:
        pass


class Integer(int):
    pass


Integer.__name__ = "int"


def at(thing, name):
    return f"<{name} at {hex(id(thing))}>"


def stand():
    release.wait()


def many(a, b=-2, *args, **kw):
    nothing = None
    yes, no = True, False
    zero, big, huge = 0, 2**62 + 1, -(2**100) - 7
    vast = -(1 << 4000)
    half, whole, tiny, far = 0.5, -3.0, 1e-7, 1e300
    empty, text, quoted = "", "tab\tnew\n\\", "it's"
    both, accents = "'\"", "\u00e9t\u00e9 \u0436 \U0001d518"
    long = "x" * 100
    raw, noise = b"it's", b"\x00\xffab\n"
    items, pair, table = [1, 2, 3], (1, 2), {"a": 1}
    some, frozen = {1, 2, 3, 4}, frozenset([1])
    thing, inner, fake, dots = Plain(), Plain.Inner(), Integer(5), ...
    module, function = json, stand
    unbound = 1
    del unbound
    truth["many"] = [
        ["argument", "a", "1"],
        ["argument", "b", "-2"],
        ["argument", "args", "<tuple of 2>"],
        ["argument", "kw", "<dict of 1>"],
        ["local", "nothing", "None"],
        ["local", "yes", "True"],
        ["local", "no", "False"],
        ["local", "zero", "0"],
        ["local", "big", str(big)],
        ["local", "huge", str(huge)],
        ["local", "vast", "<negative int of 4001 bits>"],
        ["local", "half", "0.5"],
        ["local", "whole", "-3.0"],
        ["local", "tiny", "1e-07"],
        ["local", "far", "1e+300"],
        ["local", "empty", "''"],
        ["local", "text", "'tab\\tnew\\n\\\\'"],
        ["local", "quoted", '"it\'s"'],
        ["local", "both", "'\\'\"'"],
        ["local", "accents", repr(accents)],
        ["local", "long", "'" + "x" * 80 + "'..."],
        ["local", "raw", repr(raw)],
        ["local", "noise", repr(noise)],
        ["local", "items", "<list of 3>"],
        ["local", "pair", "<tuple of 2>"],
        ["local", "table", "<dict of 1>"],
        ["local", "some", "<set of 4>"],
        ["local", "frozen", "<frozenset of 1>"],
        ["local", "thing", at(thing, "__main__.Plain")],
        ["local", "inner", at(inner, "__main__.Plain.Inner")],
        ["local", "fake", at(fake, "__main__.Integer")],
        ["local", "dots", "Ellipsis"],
        ["local", "module", at(module, "module")],
        ["local", "function", at(function, "function")],
    ]
    stand()


def shared(first, second):
    """`first` and `count` live in cells."""
    count = 10

    def inner(third):
        mine = count + 1
        truth["inner"] = [
            ["argument", "third", "3"],
            ["local", "mine", "11"],
            ["local", "count", "10"],
            ["local", "first", "'one'"],
        ]
        stand()
        return first, mine

    truth["shared"] = [
        ["argument", "first", "'one'"],
        ["argument", "second", "'two'"],
        ["local", "inner", at(inner, "function")],
        ["local", "count", "10"],
    ]
    inner(3)


def yields(n):
    truth["yields"] = [["argument", "n", "7"], ["local", "step", "0"]]
    for step in range(n):
        stand()
        yield step


def keyword(*, only, other="o", **rest):
    truth["keyword"] = [
        ["argument", "only", "5"],
        ["argument", "other", "'o'"],
        ["argument", "rest", "<dict of 0>"],
        ["local", "values", "<list of 1>"],
        ["local", "_each", "0"],
    ]
    values = [0]
    for _each in values:
        stand()


def run_many():
    many(1, -2, 3, 4, z=5)


def run_shared():
    shared("one", "two")


def run_yields():
    list(yields(7))


def run_keyword():
    keyword(only=5)


class Named(threading.Thread):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for number in range(40):  # too many for values kept with the object
            setattr(self, f"attribute{number}", number)


def start():
    threads = [
        threading.Thread(target=run_many, name="many"),
        Named(target=run_shared, name="with a dict"),
        threading.Thread(target=run_yields, name="\u017e\u00e9\u0436"),
        threading.Thread(target=run_keyword, name="renamed later"),
    ]
    for thread in threads:
        thread.daemon = True
        thread.start()
    threads[2].__dict__["more"] = 1
    threads[3].name = "renamed"
    return threads


def stands(thread):
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code.co_filename == threading.__file__


def frames(thread):
    frame = sys._current_frames()[thread.ident]
    while frame:
        code = frame.f_code
        yield [getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno]
        frame = frame.f_back


def main():
    threads = start()
    while not all(stands(thread) for thread in threads):
        time.sleep(0.01)
    time.sleep(0.2)  # until the last of them has gone to sleep in the lock
    about = {
        "runtime": ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")),
        "hexversion": sys.hexversion,
        "code_type": id(types.CodeType),
    }
    print(json.dumps(about))
    print(json.dumps({"names": {one.ident: one.name for one in threading.enumerate()}}))
    for thread in threads:
        print(json.dumps({"ident": thread.ident, "frames": list(frames(thread))}))
    print(json.dumps({"locals": truth}))
    print("end", flush=True)
    sys.stdin.read()


main()
