# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium through chromedriver: W3C WebDriver and its DevTools bridge, over HTTP."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
]
KEYS = {
    "Backspace": "\ue003",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
}
PATIENCE_S = 60


def missing() -> str | None:
    """What there should be and is not, or None."""
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return None


class Browser:
    """One window. Every method waits until the browser has done it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def visit(self, url: str) -> None:
        self._post("url", url=url)

    def open(self, page: Path) -> None:
        self.visit(page.resolve().as_uri())
        self.until("return document.documentElement.dataset.ready === 'true'")

    def script(self, body: str, *arguments: Any) -> Any:
        """What the body of a function returns in the page."""
        return self._post("execute/sync", script=body, args=list(arguments))

    def until(self, body: str, *arguments: Any) -> Any:
        """Waits until a script returns something true, and returns that."""
        deadline = time.monotonic() + PATIENCE_S
        while not (result := self.script(body, *arguments)):
            assert time.monotonic() < deadline, f"never true in the page: {body}"
            time.sleep(0.02)
        return result

    def text(self, selector: str) -> str:
        text = self.script("return document.querySelector(arguments[0]).innerText", selector)
        assert isinstance(text, str)
        return text

    def click(self, selector: str) -> None:
        box = self.script(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'nearest'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]",
            selector,
        )
        self.click_at(*box)

    def click_at(self, x: float, y: float) -> None:
        self.move_to(x, y)
        self._pointer({"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def move_to(self, x: float, y: float) -> None:
        self._pointer({"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)})

    def keys(self, *keys: str) -> None:
        """Names of KEYS, or text to type, into whatever has the focus."""
        presses = [
            {"type": kind, "value": char}
            for key in keys
            for char in ([KEYS[key]] if key in KEYS else key)
            for kind in ("keyDown", "keyUp")
        ]
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": presses}])

    def resize(self, width: int, height: int) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.until("return innerWidth === arguments[0]", width)

    def color_scheme(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])
        self.until(f"return matchMedia('(prefers-color-scheme: {scheme})').matches")

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._post("goog/cdp/execute", cmd=command, params=parameters)

    def console(self) -> list[str]:
        """What went wrong in the page since the last call."""
        return [entry["message"] for entry in self._post("se/log", type="browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since the last call."""
        entries = self._post("se/log", type="performance")
        events = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path) -> None:
        with urllib.request.urlopen(f"{self._url}/screenshot", timeout=PATIENCE_S) as answer:
            path.write_bytes(base64.b64decode(json.load(answer)["value"]))

    def _pointer(self, *actions: dict[str, Any]) -> None:
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}
        self._post("actions", actions=[{**mouse, "actions": list(actions)}])

    def _post(self, command: str, **parameters: Any) -> Any:
        return _post(f"{self._url}/{command}", parameters)


def _post(url: str, parameters: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(parameters).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{url}: {error.read().decode()}") from None


@contextmanager
def running_browser() -> Iterator[Browser]:
    # Where Debian wraps chromium in a script that adds flags of its own, the wrapper is right.
    with tempfile.TemporaryDirectory() as user_data:
        driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert driver.stdout
        try:
            options = {
                "binary": shutil.which("chromium"),
                "args": [*FLAGS, f"--user-data-dir={user_data}"],
            }
            capabilities = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            address = f"http://127.0.0.1:{_port_of(driver)}/session"
            wanted = {"capabilities": {"alwaysMatch": capabilities}}
            session = _post(address, wanted)["sessionId"]
            yield Browser(f"{address}/{session}")
            close = urllib.request.Request(f"{address}/{session}", method="DELETE")
            urllib.request.urlopen(close, timeout=PATIENCE_S).close()
        finally:
            driver.terminate()
            driver.wait()
            driver.stdout.close()


def _port_of(driver: subprocess.Popen[str]) -> int:
    assert driver.stdout
    for line in driver.stdout:
        if "started successfully on port" in line:
            return int(line.rstrip(".\n").split()[-1])
    raise AssertionError("chromedriver did not start")
