# SPDX-License-Identifier: Apache-2.0
"""``import pystrobe.auto``: samples the program from here to its end, if $PYSTROBE_ENABLE says so.

For programs that are hard to launch or to change otherwise. The variable holds settings, with
commas between them, or just ``1``:

``mode=cpu`` or ``mode=wall``, ``rate=HZ``, ``max_overhead=SHARE``, ``native=1``
    as :class:`pystrobe.Profiler` has them.
``output=FILE``
    what to save at the end; ``{pid}`` in it becomes the process id. Without it the table is printed
    on stderr.

Where the variable is not set, or empty, nothing happens. Whatever goes wrong is told on stderr, and
neither ends the program nor changes its exit status.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from pystrobe._errors import Error, InvalidArgumentError

VARIABLE = "PYSTROBE_ENABLE"
_NUMBERS = {"rate": float, "max_overhead": float, "native": int, "fd": int}
_WORDS = ("mode", "output")


def parse(text: str) -> dict[str, Any]:
    """The settings in the variable's value.

    :raises InvalidArgumentError: saying which word is wrong.
    """
    settings: dict[str, Any] = {}
    for word in text.split(",") if text != "1" else ():
        key, _, value = word.strip().partition("=")
        if key in _WORDS:
            settings[key] = value
        elif key in _NUMBERS:
            try:
                settings[key] = _NUMBERS[key](value)
            except ValueError:
                raise InvalidArgumentError(
                    f"{VARIABLE}: {key} is {value!r}", "it is a number"
                ) from None
        else:
            raise InvalidArgumentError(
                f"{VARIABLE}: {word.strip()!r} is no setting",
                "such as mode=cpu,rate=1000,output=work.html, or 1",
            )
    return settings


def _begin() -> None:
    # Not for the programs that this one starts.
    text = os.environ.pop(VARIABLE, "")
    if not text:
        return
    fd = None
    try:
        settings = parse(text)
        output, fd = settings.pop("output", None), settings.pop("fd", None)
        from pystrobe._profiler import Profiler

        settings["native"] = bool(settings.get("native", 0))
        profiler = Profiler(**settings)
        profiler._start(fd)
    except Error as error:
        _tell(str(error))
        return
    finally:
        if fd is not None:
            os.close(fd)
    atexit.register(_end, profiler, os.getpid(), output, fd is not None)


def _end(profiler: Any, pid: int, output: str | None, is_lent: bool) -> None:
    """``is_lent``: who lent the file makes the reports."""
    # A child made by fork has no sampler; and the program may have stopped it itself.
    if os.getpid() != pid or profiler._sampler is None:
        return
    try:
        profile = profiler.stop()
        if is_lent:
            if profiler._moved_because is not None:
                _keep(profile, profiler._moved_because, profiler._whole)
        elif output is None:
            profile.print(file=sys.stderr)
        else:
            profile.save(output.replace("{pid}", str(pid)))
    except (Error, OSError) as error:
        _tell(str(error))


def _keep(profile: Any, reason: str, whole: bool) -> None:
    import tempfile  # it brings a dozen other modules, which are seldom needed

    path = os.path.join(tempfile.gettempdir(), f"pystrobe-{os.getpid()}.strobe")
    profile.save(path)
    kept = "nothing recorded is lost: it" if whole else "what could be kept"
    _tell(f"sampling ended early: {reason}; {kept} is in {path}")


def _tell(what: str) -> None:
    print(f"pystrobe: {what}", file=sys.stderr)


_begin()
