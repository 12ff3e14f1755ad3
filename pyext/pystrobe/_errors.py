# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as exceptions. Each is an :class:`Error`; some are a built-in one as well, so
that code which knows nothing of pystrobe catches what it expects."""

from __future__ import annotations


class Error(Exception):
    """``message`` says what was tried and what was seen; ``hint`` is the cure, or empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class InvalidArgumentError(Error, ValueError):
    """A value that cannot be accepted."""


class NotFoundError(Error, LookupError):
    """No such process, file or thread."""


class PermissionDeniedError(Error):
    """The kernel or a policy refused; the hint tells the least privilege that helps."""


class NotPythonError(Error):
    """The process runs no CPython that can be found."""


class UnsupportedTargetError(Error):
    """A CPython whose version or build cannot be verified."""


class TargetExitedError(Error):
    """The process ended meanwhile."""


class CorruptFileError(Error, ValueError):
    """A file that is not what it says."""


class GpuError(Error, RuntimeError):
    """A GPU, its driver or one of its libraries is missing or refused."""


_CLASSES: dict[str, type[Error]] = {
    "invalid-argument": InvalidArgumentError,
    "not-found": NotFoundError,
    "permission": PermissionDeniedError,
    "not-python": NotPythonError,
    "unsupported": UnsupportedTargetError,
    "exited": TargetExitedError,
    "corrupt": CorruptFileError,
    "gpu": GpuError,
}


def from_core(code: str, message: str, hint: str) -> Error:
    """The exception for an error of the native core."""
    return _CLASSES.get(code, Error)(message, hint)
