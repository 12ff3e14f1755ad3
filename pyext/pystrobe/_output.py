# SPDX-License-Identifier: Apache-2.0
"""Where a recording is to go: looked at before there is one, and what is done where it cannot."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from pystrobe import _core
from pystrobe._errors import Error, InvalidArgumentError

if TYPE_CHECKING:
    from pystrobe._profile import Profile

OF_SAMPLES = ("strobe", "html", "speedscope", "pprof", "collapsed", "json")
OF_CALLS = ("callgrind", "pstats")
OF_TIMELINES = ("trace-events", "perfetto")


def check_name(
    path: str | os.PathLike[str], *, calls: bool = False, timeline: bool = False
) -> None:
    """That the name is one of a format which can hold that.

    :raises InvalidArgumentError: it is not.
    """
    name = os.fspath(path)
    chosen = _core.format_of(os.fsencode(path))
    if chosen is None:
        formats = (*OF_SAMPLES, *(OF_CALLS if calls else ()), *(OF_TIMELINES if timeline else ()))
        raise InvalidArgumentError(
            f"no format is known by the name {name!r}",
            f"it ends as one of {', '.join(formats)} does, such as work.html or work.strobe",
        )
    if chosen in OF_CALLS and not calls:
        raise InvalidArgumentError(
            f"{name!r} would hold calls of functions, which samples do not tell",
            "trace the program: pystrobe.Tracer, or mode=trace",
        )
    if chosen in OF_TIMELINES and not timeline:
        raise InvalidArgumentError(
            f"{name!r} would hold a timeline, and none is kept", "ask for it: timeline=True"
        )


def from_root(path: str | os.PathLike[str]) -> str:
    """
    :raises InvalidArgumentError: nobody knows where that is.
    """
    try:
        return os.path.abspath(os.fsdecode(path))
    except FileNotFoundError:
        raise InvalidArgumentError(
            f"{os.fsdecode(path)!r} would be in a folder that is gone",
            "give its path from the root",
        ) from None


def check_place(path: str | os.PathLike[str]) -> str:
    """The file from the root, wherever the program goes meanwhile.

    :raises InvalidArgumentError: as things are it cannot be written.
    """
    whole = from_root(path)
    folder = os.path.dirname(whole)
    if os.path.isdir(whole):
        raise InvalidArgumentError(f"{whole} is a folder", "name a file in it")
    if not os.path.isdir(folder):
        raise InvalidArgumentError(f"{whole}: there is no folder {folder}", "make it first")
    # Files are made anew, but a device or a pipe is written itself.
    is_device = os.path.exists(whole) and not os.path.isfile(whole)
    if not _may(whole, os.W_OK) if is_device else not _may(folder, os.W_OK | os.X_OK):
        raise InvalidArgumentError(
            f"{whole}: {'it' if is_device else folder} cannot be written", "choose another place"
        )
    return whole


def _may(path: str, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def failure(error: Exception, profile: Profile | None) -> str:
    """What is told of an end that went wrong: why, and where the profile is kept."""
    told = str(error) or repr(error)
    return told if profile is None else f"{told}\n{kept(profile)}"


def kept(profile: Profile) -> str:
    """Saves it where it can be, and says where that is."""
    try:
        return f"nothing recorded is lost: it is in {keep(profile)}"
    except Exception as error:
        return f"what was recorded is lost, for it could not be kept elsewhere: {error}"


def keep(profile: Profile) -> str:
    """Saves it where temporary files go, and gives the name."""
    # Not by the module tempfile: what it brings may change how an interrupted program ends.
    name = f"pystrobe-{os.getpid()}-{time.time_ns()}.strobe"
    failure: Exception | None = None
    for folder in filter(None, (os.environ.get("TMPDIR"), "/tmp", "/var/tmp", os.curdir)):
        path = os.path.abspath(os.path.join(folder, name))
        try:
            profile.save(path)
            return path
        except (Error, OSError) as error:
            failure = failure or error
    assert failure is not None
    raise failure
