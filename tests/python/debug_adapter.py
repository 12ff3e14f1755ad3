# SPDX-License-Identifier: Apache-2.0
"""A program under debugpy, spoken to as an editor does: by the Debug Adapter Protocol
(microsoft.github.io/debug-adapter-protocol), a header with the length and then JSON."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from own_interpreters import Own

TIMEOUT_S = 60


class Debugger:
    """Connected to a program that waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._sequence = 0

    def request(self, command: str, **arguments: Any) -> None:
        self._sequence += 1
        head = {"seq": self._sequence, "type": "request", "command": command}
        body = json.dumps({**head, "arguments": arguments}).encode()
        self._connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def messages(self) -> Iterator[dict[str, Any]]:
        while head := self._stream.readline():
            length = int(head.split(b":")[1])
            self._stream.readline()
            yield json.loads(self._stream.read(length))

    def run(self, script: Path, line: int) -> int:
        """Sets a breakpoint and goes on from it each time. How often it stopped there."""
        stops = 0
        self.request("initialize", adapterID="debugpy", pathFormat="path")
        self.request("attach", justMyCode=False)
        for message in self.messages():
            event = message.get("event")
            if event == "initialized":
                place = {"source": {"path": str(script)}, "breakpoints": [{"line": line}]}
                self.request("setBreakpoints", **place)
                self.request("configurationDone")
            elif event == "stopped":
                stops += 1
                self.request("continue", threadId=message["body"]["threadId"])
            elif event == "terminated":
                break
        self.request("disconnect")
        return stops


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def connected(port: int) -> socket.socket:
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextmanager
def debugged(own: Own, script: Path, output: Path) -> Iterator[tuple[Debugger, subprocess.Popen]]:
    """A script that waits for its debugger; what it prints goes to `output`, for the adapter, which
    outlives it, has its pipes too."""
    port = free_port()
    options = ("-X", "frozen_modules=off") if own.version >= (3, 11) else ()
    wait = ("-m", "debugpy", "--listen", str(port), "--wait-for-client")
    environment = {**own.environment(), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with output.open("w") as written:
        process = subprocess.Popen(
            [*own.command, *options, *wait, own.seen(script)],
            stdout=written,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        with connected(port) as connection:
            yield Debugger(connection), process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
        process.wait()
