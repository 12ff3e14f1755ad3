# SPDX-License-Identifier: Apache-2.0
"""Learning that the program has imported a module."""

from __future__ import annotations

import importlib.abc
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class WhenImported(importlib.abc.MetaPathFinder):
    """Calls ``then`` after each import of one of these modules, in the thread that imports it, from
    its making until :meth:`stop`. Finds nothing itself. A child of fork() has it too."""

    def __init__(self, names: Sequence[str], then: Callable[[], None]) -> None:
        self._names = frozenset(names)
        self._then = then
        self._asking = threading.local()
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """What is being imported meanwhile may be told yet."""
        self._names = frozenset()
        # The program may have put another list in its place.
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # Another finder of this kind asks all others, too.
        if fullname not in self._names or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = self._ask_others(fullname, path, target)
        finally:
            self._asking.now = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Telling(spec.loader, self._tell)
        return spec

    def _ask_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: ModuleSpec | None = find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def _tell(self, name: str) -> None:
        if not self._names:
            return
        try:
            self._then()
        except Exception as error:
            # The program's import is none of its business.
            warnings.warn(f"{name} is not watched: {error!r}", RuntimeWarning, stacklevel=2)


class _Telling(importlib.abc.Loader):
    """In place of a loader until it loads, which may be of other modules too."""

    def __init__(self, loader: Any, tell: Callable[[str], None]) -> None:
        self._loader = loader
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create = getattr(self._loader, "create_module", None)
        module: ModuleType | None = None if create is None else create(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            spec.loader = self._loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._tell(module.__name__)
