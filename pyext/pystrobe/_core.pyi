# SPDX-License-Identifier: Apache-2.0
from typing import Any

from typing_extensions import Self

__version__: str

def dump(pid: int, locals: bool, pause: str, native: bool) -> dict[str, Any]: ...
def format_of(file_name: bytes) -> str | None: ...
def read(
    path: bytes,
    mode: str | None,
    thread: str | None,
    since: float,
    until: float | None,
    include_idle: bool,
) -> dict[str, Any]: ...

class Recording:
    def report(
        self,
        mode: str | None,
        thread: str | None,
        since: float,
        until: float | None,
        include_idle: bool,
    ) -> dict[str, Any]: ...
    def table(
        self,
        mode: str | None,
        top: int | None,
        fd: int | None,
        directory: bytes,
        include_idle: bool,
    ) -> str: ...
    def save(
        self, fd: int, name: bytes, format: str, mode: str | None, include_idle: bool
    ) -> None: ...
    def stacks(self, include_idle: bool) -> list[dict[str, Any]]: ...

class OwnSampler:
    def __init__(
        self,
        by_cpu_time: bool,
        rate: float,
        max_overhead: float,
        native: bool,
        only_caller: bool,
        version: str,
        fd: int | None,
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> Recording: ...
    def moved_because(self) -> str | None: ...
    def whole(self) -> bool: ...
    def abandon(self) -> None: ...
    @staticmethod
    def forget_parent() -> None: ...

class Region:
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
