# SPDX-License-Identifier: Apache-2.0
"""``import pystrobe.auto``: samples or traces the program from here to its end, if $PYSTROBE_ENABLE
says so.

For programs that are hard to launch or to change otherwise. The variable holds settings, with
commas between them, or just ``1``:

``mode=cpu``, ``mode=wall`` or ``mode=gpu``, ``rate=HZ``, ``max_overhead=SHARE``, ``native=1``,
``threads=current``
    as :class:`pystrobe.Profiler` has them.
``follow_fork=1``
    as it has it: with ``output=work.html`` a child made by fork writes ``work.PID.html``, with
    ``output=work-{pid}.html`` the same with its own process id.
``gpu=1``, ``timeline=1``
    as both have them; ``gpu=launches`` as the first.
``mode=trace``, ``engine=NAME``, ``builtins=1``, ``max_depth=N``, ``clock=NAME``
``include=GLOB;GLOB``, ``exclude=GLOB``, ``stdlib=0``
    as :class:`pystrobe.Tracer` has them. In a pattern ``%2c``, ``%3b`` and ``%25`` stand for ``,``,
    ``;`` and ``%``.
``output=FILE``
    what to save at the end; ``{pid}`` in it becomes the process id. Its folder must be there.
    Without it the table is printed on stderr.

Where the variable is not set, empty or ``0``, nothing happens. Whatever goes wrong is told on
stderr, and neither ends the program nor changes its exit status; what is wrong with the settings is
told at once, and nothing is sampled. (Where ``pystrobe run --in-process`` or ``trace`` has started
it, it ends before it begins if it cannot be sampled or traced.)
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from pystrobe import _output
from pystrobe._errors import Error, InvalidArgumentError

if TYPE_CHECKING:
    from pystrobe._follow import NameOfChild

VARIABLE = "PYSTROBE_ENABLE"
_NUMBERS = {"rate": float, "max_overhead": float, "fd": int, "max_depth": int}
_FLAGS = ("native", "gpu", "builtins", "stdlib", "timeline", "follow_fork")
_MORE_VALUES = {"gpu": ("launches",)}
_WORDS = ("mode", "threads", "engine", "clock", "output")
#: Encoded as patterns are: where children go if another process has the output.
_PLACE_OF_CHILDREN = "children"
_LISTS = ("include", "exclude")
#: Of either way, what does not concern the other.
_OF_SAMPLES = ("rate", "max_overhead", "native", "threads", "follow_fork")
_OF_CALLS = (
    *("engine", "builtins", "max_depth", "clock"),
    *("include", "exclude", "stdlib"),
)


def parse(text: str) -> dict[str, Any]:
    """The settings in the variable's value.

    :raises InvalidArgumentError: saying which word is wrong.
    """
    settings: dict[str, Any] = {}
    for word in text.split(",") if text != "1" else ():
        key, _, value = word.strip().partition("=")
        if key in _WORDS:
            if key != "output" and " " in value:
                raise InvalidArgumentError(
                    f"{VARIABLE}: {word.strip()!r} has a space",
                    "commas stand between settings: mode=cpu,rate=1000",
                )
            settings[key] = value
        elif key == _PLACE_OF_CHILDREN:
            settings[key] = _decoded(value)
        elif key in _LISTS:
            settings[key] = [_decoded(part) for part in value.split(";")]
        elif key in _FLAGS:
            words = _MORE_VALUES.get(key, ())
            if value not in ("0", "1", *words):
                raise InvalidArgumentError(
                    f"{VARIABLE}: {key} is {value!r}", f"it is {' or '.join(('0', '1', *words))}"
                )
            settings[key] = value if value in words else value == "1"
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


def _decoded(word: str) -> str:
    for code, character in (("%2c", ","), ("%3b", ";"), ("%25", "%")):
        word = word.replace(code, character)
    return word


def _check(settings: dict[str, Any]) -> None:
    mode = settings.get("mode", "cpu")
    for key in _OF_SAMPLES if mode == "trace" else _OF_CALLS:
        if key in settings:
            raise InvalidArgumentError(
                f"{VARIABLE}: {key} has no meaning with mode={mode}", "leave one of them out"
            )


def _take_children(settings: dict[str, Any], output: str | None) -> NameOfChild | None:
    """Where children made by fork write theirs, if they do.

    :raises InvalidArgumentError: there is none.
    """
    children: str | None = settings.pop(_PLACE_OF_CHILDREN, None)
    if not settings.pop("follow_fork", False):
        return None if children is None else _beside(children)
    if output is None:
        raise InvalidArgumentError(
            f"{VARIABLE}: follow_fork=1 without an output", "such as output=work.html"
        )
    if settings.get("mode") == "gpu":
        raise InvalidArgumentError(
            f"{VARIABLE}: follow_fork=1 with mode=gpu", "a GPU's work is not seen in children"
        )
    whole = _output.from_root(output)
    # Here: a child may not import.
    import pystrobe._follow  # noqa: F401

    return (lambda tag: whole.replace("{pid}", tag)) if "{pid}" in whole else _beside(whole)


def _beside(place: str) -> NameOfChild:
    from pystrobe._follow import beside

    return beside(place)


def _place(output: str, settings: dict[str, Any]) -> str:
    """Where it is to be saved.

    :raises InvalidArgumentError: it cannot.
    """
    path = output.replace("{pid}", str(os.getpid()))
    _output.check_name(
        path,
        calls=settings.get("mode") == "trace",
        timeline=settings.get("timeline", False),
    )
    return _output.check_place(path)


def _started(settings: dict[str, Any], fd: int | None, children: NameOfChild | None) -> Any:
    if settings.get("mode") == "trace":
        from pystrobe._tracer import Tracer

        tracer = Tracer(
            engine=settings.get("engine", "auto"),
            builtins=settings.get("builtins", False),
            include=settings.get("include", ()),
            exclude=settings.get("exclude", ()),
            stdlib=settings.get("stdlib", True),
            timeline=settings.get("timeline", False),
            max_depth=settings.get("max_depth"),
            clock=settings.get("clock", "both"),
            gpu=settings.get("gpu", False),
        )
        if fd is None:
            tracer.start()
        else:
            tracer._start_program(fd)
        return tracer
    from pystrobe._enable import check_mode
    from pystrobe._profiler import Profiler

    check_mode(settings.get("mode", "cpu"))
    profiler = Profiler(**settings)
    profiler._name_of_child = children
    profiler._start(fd)
    return profiler


def _begin() -> None:
    # Not for the programs that this one starts.
    text = os.environ.pop(VARIABLE, "")
    if text in ("", "0"):
        return
    fd = None
    try:
        settings = parse(text)
        output, fd = settings.pop("output", None), settings.pop("fd", None)
        if fd is None:
            # At the end that would have the interpreter forget that it was interrupted: classes are
            # made by exec, which resets what the exit status is made of.
            import pystrobe._profile  # noqa: F401
        _check(settings)
        children = _take_children(settings, output)
        place = None if output is None else _place(output, settings)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            profiler = _started(settings, fd, children)
        for warning in warned:
            _tell(str(warning.message))
    except Error as error:
        _tell(str(error))
        if fd is not None:
            # Whoever lent the file shares its position, and need not guess why it is empty.
            with contextlib.suppress(OSError):
                os.lseek(fd, 1, os.SEEK_SET)
            # It was started for this alone, and has done nothing yet.
            os._exit(1)
        return
    finally:
        if fd is not None:
            os.close(fd)
    atexit.register(_end, profiler, os.getpid(), place, fd is not None)


def _end(profiler: Any, pid: int, place: str | None, is_lent: bool) -> None:
    """``is_lent``: who lent the file makes the reports."""
    # A child made by fork has nothing that runs.
    if os.getpid() != pid:
        return
    profile = None
    try:
        recording = profiler._finish()
        if recording is None:
            return  # the program has stopped it
        if is_lent and profiler._moved_because is None:
            _tell_end_of_timeline(profiler)
            return
        from pystrobe._profile import Profile

        profile = Profile(recording)
        if is_lent:
            _keep(profile, profiler)
        elif place is None:
            _print(profile)
        else:
            profile.save(place)
    # The program may have done anything to what this needs.
    except Exception as error:
        _tell(str(error) or repr(error))
        if profile is not None:
            _tell(_output.kept(profile))


def _print(profile: Any) -> None:
    """All that there is, for it is kept nowhere."""
    mode = profile._whole.mode
    if profile.gpu is None or mode == "gpu":
        profile.print(file=sys.stderr)
        return
    profile.print(mode=mode, file=sys.stderr)
    print(file=sys.stderr)
    profile.print(mode="gpu", file=sys.stderr)


def _keep(profile: Any, profiler: Any) -> None:
    path = _output.keep(profile)
    kept = "nothing recorded is lost: it"
    if not profiler._whole:
        kept = "what could be kept"
    elif profiler._timeline_failure:
        kept = "all but the timeline"
    _tell(f"{profiler._MOVED}: {profiler._moved_because}; {kept} is in {path}")
    profiler._note_kept()


def _tell_end_of_timeline(profiler: Any) -> None:
    failure = profiler._timeline_failure
    if failure:
        _tell(f"the timeline ends early: {failure}; counts and times are those of all calls")


def _tell(what: str) -> None:
    print(f"pystrobe: {what}", file=sys.stderr)


_begin()
