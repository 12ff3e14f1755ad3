# SPDX-License-Identifier: Apache-2.0
"""Where the native executable of this installation is."""

from __future__ import annotations

import os
import sysconfig


def executable() -> str:
    """The path of the ``pystrobe`` executable that was installed with this package.

    :raises FileNotFoundError: it is not there; the message names where it should be.
    """
    expected = os.path.join(sysconfig.get_path("scripts"), "pystrobe")
    if os.path.isfile(expected) and _belongs_here():
        return expected
    # `pip install --target` puts it beside the package, and says otherwise in its record.
    beside = os.path.join(_packages(), "bin", "pystrobe")
    if os.path.isfile(beside):
        return beside
    # Installed by another scheme (--user, --prefix): the installer's record knows.
    from importlib.metadata import PackageNotFoundError, files

    try:
        recorded = files("pystrobe") or []
    except PackageNotFoundError:
        recorded = []
    for entry in recorded:
        if entry.name == "pystrobe" and entry.parent.name == "bin":
            path = os.path.realpath(str(entry.locate()))
            if os.path.isfile(path):
                return path
    raise FileNotFoundError(
        f"the pystrobe executable is not at {expected}, nor at {beside}, nor where the installer's "
        "record says; install the package again"
    )


def _packages() -> str:
    """Where this package is."""
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _belongs_here() -> bool:
    """Whether this package is part of the environment that sysconfig speaks of."""
    return _packages() in {
        os.path.realpath(sysconfig.get_path(name)) for name in ("platlib", "purelib")
    }
