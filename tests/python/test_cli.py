# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: refusals, help, exit codes, reports."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from find import Interpreter
from on_terminal import OnTerminal
from pystrobe_command import Finished, Pystrobe, without_threads
from running import running

pytestmark = pytest.mark.beside_others


def refused(pystrobe: Pystrobe, *arguments: str) -> Finished:
    """Runs what must be refused as wrong usage: one line of what, then an indented cure."""
    finished = pystrobe.run(*arguments)
    assert finished.code == 2, finished
    assert finished.out == ""
    lines = finished.err.splitlines()
    assert lines[0].startswith("pystrobe: "), finished
    assert len(lines) > 1
    assert all(line.startswith("  ") for line in lines[1:]), finished
    return finished


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["attach"], "process id"),
        (["attach", "python"], "'python'"),
        (["attach", "0"], "'0'"),
        (["attach", "1", "-r", "0"], "'0'"),
        (["attach", "1", "-r", "-3"], "'-3'"),
        (["attach", "1", "-r", "1e9"], "'1e9'"),
        (["attach", "1", "-r", "nan"], "'nan'"),
        (["attach", "1", "-d", "0"], "'0'"),
        (["attach", "1", "--max-overhead", "2"], "'2'"),
        (["attach", "1", "--pause", "none", "--max-overhead", "1%"], "1%"),
        (["attach", "1", "--unit", "us"], "us"),
        (["attach", "1", "-o", "x.what"], "x.what"),
        (["attach", "1", "--what"], "'--what'"),
        (["attach", "-p", "1"], "stands alone: pystrobe attach PID"),
        (["dump", "--pid=1"], "stands alone: pystrobe dump PID"),
        (["record", "--pid", "1"], "pystrobe attach PID"),
        (["report", "x.strobe", "--since", "3", "--until", "2"], "3"),
        (["run"], "program"),
        (["what"], "'what'"),
    ],
)
def test_wrong_usage(pystrobe: Pystrobe, arguments: list[str], seen: str) -> None:
    assert seen in refused(pystrobe, *arguments).err


@pytest.mark.parametrize("verb", [(), ("attach",), ("run",), ("dump",), ("report",), ("doctor",)])
def test_help(pystrobe: Pystrobe, verb: tuple[str, ...]) -> None:
    text = pystrobe.succeed(*verb, "--help").out
    assert "Usage: pystrobe " in text
    assert "Examples:" in text


def test_needs_no_library_but_glibc(pystrobe: Pystrobe) -> None:
    listed = subprocess.run(
        ["readelf", "-d", str(pystrobe.executable)], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", listed))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_no_such_process(pystrobe: Pystrobe) -> None:
    for verb in ("attach", "dump"):
        finished = pystrobe.run(verb, str(2**22 + 1))
        assert finished.code == 1, finished
        assert str(2**22 + 1) in finished.err


def test_not_python(pystrobe: Pystrobe) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            finished = pystrobe.run("attach", str(process.pid))
        finally:
            process.kill()
    assert finished.code == 1, finished
    assert "sleep" in finished.err


# --- report, dump, doctor


def test_report_refuses_what_is_no_recording(pystrobe: Pystrobe, tmp_path: Path) -> None:
    assert pystrobe.run("report", str(tmp_path / "none.strobe")).code == 1
    for name, data in {"empty": b"", "text": b"hello\n" * 100, "binary": bytes(4096)}.items():
        path = tmp_path / f"{name}.strobe"
        path.write_bytes(data)
        finished = pystrobe.run("report", str(path))
        assert finished.code == 1, finished
        assert str(path) in finished.err


def test_table_follows_the_width(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = tmp_path / "a.strobe"
    with running(newest, "tower") as target:
        pystrobe.succeed("attach", str(target.pid), "-d", "0.5", "-q", "-o", str(path))
    for columns in (60, 80, 200):
        shown = OnTerminal(str(pystrobe.executable), "report", str(path), columns=columns)
        assert shown.finish() == 0
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown.text)
        assert max(len(line) for line in plain.splitlines()) <= columns
    plain = pystrobe.succeed("report", str(path)).out
    assert "\x1b" not in plain
    forced = pystrobe.succeed("report", str(path), env={**os.environ, "CLICOLOR_FORCE": "1"}).out
    assert "\x1b[1m" in forced


def test_dump_text(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "threads") as target:
        finished = pystrobe.succeed("dump", str(target.pid))
        with_locals = pystrobe.succeed("dump", str(target.pid), "--locals")
    assert "most recent call first" in finished.out
    assert f'Thread {target.pid} "MainThread"' in finished.out
    assert "may be secret" in with_locals.err
    assert " = " in with_locals.out
    assert " = " not in finished.out


def checks_in(text: str) -> dict[str, str]:
    """State and all words of each check, by its name."""
    blocks = re.split(r"\n(?=ok |warn|fail|\n)", "\n" + text)
    found = (re.fullmatch(r"(ok|warn|fail) +(\S.*?)  +(.*)", one, re.DOTALL) for one in blocks)
    return {one[2]: " ".join(f"{one[1]} {one[3]}".split()) for one in found if one}


def test_doctor(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        finished = pystrobe.run("doctor", str(target.pid))
    assert finished.code == 0, finished
    said = checks_in(finished.out)
    of_machine = (
        "kernel|reading memory|Yama|privilege|seccomp|CPUs|CPU accounting|priority|container"
    )
    of_process = "process|tracer|its container|executable|interpreter|layout|scheduling"
    assert {*of_machine.split("|"), *of_process.split("|")} <= set(said), finished
    assert said["kernel"].startswith(("ok Linux", "warn Linux"))
    assert said["process"].startswith(f"ok {target.pid} (python3"), finished
    assert said["interpreter"].startswith(f"ok Python {newest.version}"), finished
    assert said["scheduling"] == "ok ordinary"
    last = "Everything is in order." if "\nwarn" not in finished.out else "Sampling works, with the"
    assert finished.out.splitlines()[-1].startswith(last)


def test_doctor_tells_what_is_not_well_and_its_cure(
    pystrobe: Pystrobe, newest: Interpreter
) -> None:
    without_rseq = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    cpu = min(os.sched_getaffinity(0))
    with running(newest, "tower", environment=without_rseq) as target:
        finished = pystrobe.run("doctor", str(target.pid), cpu=cpu)
    assert finished.code == 0, finished
    said = checks_in(finished.out)
    assert re.fullmatch(r"warn 1 of \d+ may be used .* only CPU .* -r 50[; ].*", said["CPUs"])
    assert re.fullmatch(
        r"warn its C library .* /proc, .* glibc 2\.35 .*", said["rseq of the program"]
    )
    assert finished.out.endswith("\nSampling works, with the limits above.\n")


def test_doctor_tells_what_stops_sampling(pystrobe: Pystrobe) -> None:
    finished = pystrobe.run("doctor", str(2**22 + 1))
    assert finished.code == 1, finished
    process = checks_in(finished.out)["process"]
    assert process.startswith(f"fail there is no process {2**22 + 1} "), finished
    assert "pgrep -af python" in process
    assert finished.out.endswith("\nSomething above stops sampling.\n")


def test_doctor_tells_where_no_thread_may_start(pystrobe: Pystrobe, newest: Interpreter) -> None:
    with running(newest, "tower") as target:
        finished = without_threads(pystrobe, "doctor", str(target.pid))
    assert finished.code == 1, finished
    assert re.search(r"fail +CPUs shared +cannot start a thread", finished.out), finished
    assert "ulimit -u" in finished.out
