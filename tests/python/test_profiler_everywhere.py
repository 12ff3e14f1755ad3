# SPDX-License-Identifier: Apache-2.0
"""The profiler of this process on each interpreter that has the package: what most programs use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from own_interpreters import Own
from own_program import MODES, answer

pytestmark = pytest.mark.beside_others

pytest.importorskip("pystrobe", reason="the package is not installed: make build")


@MODES
@pytest.mark.alone
def test_a_profile_has_who_burnt_and_in_which_region(own: Own, mode: str) -> None:
    said = answer(
        """
import io, json, contextlib, pystrobe

def stacks(profile):
    return sorted({"/".join(f.function for f in s.frames) for s in profile.stacks()})

with pystrobe.Profiler(mode=MODE, rate=1000) as block:
    with pystrobe.region("part"):
        burn50()
pystrobe.enable(mode=MODE, rate=1000)
burn30()
between = pystrobe.disable()

@pystrobe.profile(mode=MODE, rate=1000)
def decorated():
    burn20()
    return "returned"

printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    returned = decorated()
quality = block.profile.quality
print(json.dumps({"block": stacks(block.profile), "between": stacks(between), "returned": returned,
    "printed": printed.getvalue(), "taken": quality.taken, "proved": quality.proved}))
""",
        mode,
        own,
    )
    assert said["taken"] >= said["proved"] > 10
    assert "<module>/part/burn50/spin" in said["block"] or (
        "part/<module>/burn50/spin" in said["block"]
    ), said["block"]
    assert "<module>/burn30/spin" in said["between"]
    assert said["returned"] == "returned"
    assert "burn20" in said["printed"]
    assert "Quality: " in said["printed"]


@MODES
def test_the_end_of_the_program_ends_it(own: Own, mode: str, tmp_path: Path) -> None:
    """Without a word, and while another thread runs."""
    output = own.directory(tmp_path) / "saved.json"
    program = f"""
import atexit, threading, pystrobe
def burn():
    while True:
        sum(range(1000))
# The first that is registered is called last: after that which ends the sampling.
atexit.register(lambda: profiler.profile.save({own.seen(output)!r}))
profiler = pystrobe.Profiler(mode={mode!r}, rate=1000)
profiler.start()
threading.Thread(target=burn, daemon=True).start()
sum(i * i for i in range(10**6))
raise SystemExit(3)
"""
    done = subprocess.run(
        [*own.command, "-c", program],
        env=own.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (3, "")
    report = json.loads(output.read_text())
    assert report["quality"]["complete"]


@pytest.mark.parametrize("setting", ["mode=cpu", "mode=wall", "mode=trace"])
def test_auto_begins_it(own: Own, setting: str, tmp_path: Path) -> None:
    output = own.directory(tmp_path) / "saved.json"
    done = subprocess.run(
        [
            *own.command,
            "-c",
            "import pystrobe.auto\nsum(i * i for i in range(10**6))\nraise SystemExit(3)\n",
        ],
        env={**own.environment(), "PYSTROBE_ENABLE": f"{setting},output={own.seen(output)}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (3, "")
    functions = json.loads(output.read_text())["functions"]
    assert {"<module>", "<genexpr>"} <= {function["name"] for function in functions}
