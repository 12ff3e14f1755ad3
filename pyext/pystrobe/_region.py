# SPDX-License-Identifier: Apache-2.0
"""Parts of a program that have names in reports."""

from __future__ import annotations

from pystrobe import _core

# Little else: where a profiler runs, it sees the first region being loaded.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


class region(_core.Region):  # noqa: N801  # used as a statement
    """Names a part of the program: a block, or all of a function.

    >>> with pystrobe.region("load"):
    ...     read(path)
    >>> @pystrobe.region("train")
    ... def step(batch): ...

    In what a profiler of this process records, the name stands as a frame of its own above the
    function that has the block, in every format; pprof has it as the label ``region`` too. All that
    is called from the block is in it. What other threads do meanwhile is not, nor are other tasks
    while a coroutine waits in its block. Regions may be within each other.

    It costs about a microsecond, profiler or not. There is room for 4,000 different names; more
    than that are "(other regions)".

    :param name: any text.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __call__(self, function: Function) -> Function:
        """The function, or coroutine, with its whole run in the region."""
        import functools
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a region decorates functions and coroutines; put `with` in generators")
        wrapper: Any
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return wrapper  # type: ignore[no-any-return]
