# SPDX-License-Identifier: Apache-2.0
"""Names of C functions whose debug information is in a file of its own."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from own_program import answer
from running import TARGETS

pytest.importorskip("pystrobe", reason="the package is not installed: make build")
pytestmark = pytest.mark.skipif(not shutil.which("objcopy"), reason="needs objcopy, of binutils")


NAMED = ["exported", "static_work", "inlined_rounds"]
# An ID by which it is looked for elsewhere first, or none; and that file's name.
BY_CHECKSUM, BY_ID = ("none", "inlined.debug"), ("sha1", "inlined.so")


def strip(directory: Path, build_id: str, debug_name: str) -> Path:
    """A library that names its debug information, which is in `.debug` beside it."""
    whole, library = directory / "whole.so", directory / "inlined.so"
    debug = directory / ".debug" / debug_name
    debug.parent.mkdir()
    for command in (
        f"cc -g -O2 -shared -fPIC -Wl,--build-id={build_id} -o {whole} {TARGETS}/c_inlined.c",
        f"objcopy --only-keep-debug {whole} {debug}",
        f"objcopy --strip-all --add-gnu-debuglink={debug} {whole} {library}",
    ):
        subprocess.run(command.split(), check=True)
    whole.unlink()
    return library


def test_a_file_without_end_is_not_read_for_its_checksum(tmp_path: Path) -> None:
    library = strip(tmp_path, *BY_CHECKSUM)
    debug = tmp_path / ".debug" / BY_CHECKSUM[1]
    for take_place in (lambda: os.truncate(debug, 1 << 42), lambda: debug.symlink_to("/dev/zero")):
        take_place()
        assert "exported" in path_of_the_time(library)
        debug.unlink()


@pytest.fixture(params=[BY_CHECKSUM, BY_ID], ids=["checksum", "build-id"])
def stripped(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return strip(tmp_path, *request.param)


def path_of_the_time(library: Path) -> list[str]:
    """The names below Python's that have most of the time in the library."""
    stack = answer(
        f"""
import ctypes, json, pystrobe
exported = ctypes.CDLL({str(library)!r}).exported
exported.argtypes = [ctypes.c_uint64, ctypes.c_int]
with pystrobe.Profiler(rate=1000, native=True) as profiler:
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        exported(1, 5)
# At a function's first and last instructions there may be no word of those that called it.
stacks = sorted(profiler.profile.stacks(), key=lambda stack: stack.self.cpu_ns)
print(json.dumps([frame.function for frame in stacks[-1].frames if frame.native]))
"""
    )
    return list(stack)


def test_static_and_inlined_functions_are_named(stripped: Path) -> None:
    assert path_of_the_time(stripped)[-3:] == NAMED


def test_of_another_build_they_are_not(tmp_path: Path) -> None:
    """A file that is there by chance tells of other instructions."""
    library = strip(tmp_path, *BY_CHECKSUM)
    debug = tmp_path / ".debug" / "inlined.debug"
    debug.write_bytes(debug.read_bytes() + b"another")
    assert not {"static_work", "inlined_rounds"} & set(path_of_the_time(library))


def test_without_that_file_they_are_not(stripped: Path) -> None:
    shutil.rmtree(stripped.parent / ".debug")
    path = path_of_the_time(stripped)
    assert "exported" in path
    assert not {"static_work", "inlined_rounds"} & set(path)


@contextmanager
def debuginfod(debug: Path, asked: list[str]) -> Iterator[str]:
    """A server that has that file for every build-id; `asked` gets the paths asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = self.path.endswith("/debuginfo")
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(debug.read_bytes() if found else b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(not ctypes.util.find_library("debuginfod"), reason="needs libdebuginfod")
def test_a_server_is_asked_where_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = strip(tmp_path, *BY_ID)
    debug = (tmp_path / ".debug").rename(tmp_path / "of the server") / "inlined.so"
    notes = subprocess.check_output(["readelf", "--notes", library], text=True)
    build_id = re.findall(r"Build ID: (\w+)", notes)[0]
    asked: list[str] = []
    with debuginfod(debug, asked) as url:
        monkeypatch.setenv("DEBUGINFOD_URLS", url)
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        path = path_of_the_time(library)
    assert path[-3:] == NAMED
    assert f"/buildid/{build_id}/debuginfo" in asked


def test_nothing_is_loaded_to_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    loaded = answer(
        """
import json, os, pystrobe
with pystrobe.Profiler(native=True) as profiler:
    work(1)
profiler.profile.stacks()
print(json.dumps([line.split()[-1] for line in open("/proc/self/maps")]))
"""
    )
    names = {os.path.basename(path) for path in loaded}
    assert any(name.startswith("_core.") for name in names)
    assert not [name for name in names if "debuginfod" in name or "libcurl" in name]
