# SPDX-License-Identifier: Apache-2.0
from typing import Any

def dump(pid: int, locals: bool, pause: str) -> dict[str, Any]: ...
def read(
    path: bytes,
    mode: str,
    thread: str | None,
    since: float,
    until: float | None,
    include_idle: bool,
) -> dict[str, Any]: ...
