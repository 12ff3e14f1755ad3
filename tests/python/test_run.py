# SPDX-License-Identifier: Apache-2.0
"""`pystrobe run`: the program keeps its streams, its signals and its exit status."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from find import Interpreter
from on_terminal import OnTerminal
from pystrobe_command import Finished, Pystrobe, without_threads
from running import running

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NEEDS_STRACE = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")


def run_python(pystrobe: Pystrobe, newest: Interpreter, *words: str, **options: object) -> Finished:
    return pystrobe.run("run", "--python", newest.command()[0], *words, **options)  # type: ignore[arg-type]


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    return str(path)


BUSY = "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass\n"


def test_run_reports_on_stderr(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = script(tmp_path, BUSY + "import sys; print('out', *sys.argv[1:]); sys.exit(3)\n")
    finished = run_python(pystrobe, newest, path, "-r", "--top")
    assert finished.code == 3, finished
    assert finished.out == "out -r --top\n"
    assert "self %" in finished.err
    assert "script.py" in finished.err


def test_run_notes_an_output_that_went_to_the_program(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    program = script(tmp_path, BUSY)
    finished = run_python(pystrobe, newest, program, "-o", "out.html")
    assert finished.code == 0, finished
    assert "'-o out.html' was given to the program" in finished.err
    assert "self %" in finished.err
    assert "given to" not in run_python(pystrobe, newest, program, "out.html").err
    own = tmp_path / "own.html"
    own.write_text("the program's")
    assert "given to" not in run_python(pystrobe, newest, program, "-o", str(own)).err


def test_run_samples_by_ptrace_until_the_program_ends(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    """A child that its own parent traces is told of by wait() whenever it stops."""
    program = script(tmp_path, BUSY * 2)
    finished = run_python(pystrobe, newest, "--pause", "ptrace", "-r", "500", program)
    assert finished.code == 0, finished
    samples = re.search(r"Quality: [^;]+; ([\d,]+) samples", finished.err)
    assert samples, finished
    assert int(samples[1].replace(",", "")) > 50, finished


def test_run_module(pystrobe: Pystrobe, newest: Interpreter) -> None:
    finished = run_python(pystrobe, newest, "-m", "timeit", "-n", "1", "pass")
    assert finished.code == 0, finished
    assert "best of" in finished.out


def test_run_passes_stdin(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    path = script(tmp_path, "import sys; print(sys.stdin.read().upper())\n" + BUSY)
    done = subprocess.run(
        [str(pystrobe.executable), "run", "--python", newest.command()[0], path],
        input="hello",
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0
    assert done.stdout == "HELLO\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_run_tells_the_signal(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, number: signal.Signals
) -> None:
    text = BUSY + f"import os; os.kill(os.getpid(), {int(number)}); time.sleep(5)\n"
    finished = run_python(pystrobe, newest, script(tmp_path, text))
    assert finished.code == 128 + number, finished
    assert "self %" in finished.err
    last = finished.err.splitlines()[-1]
    assert last.startswith(f"pystrobe: the program was ended by signal {int(number)} ("), finished


def test_run_forwards_sigterm(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    text = "import signal, sys, time\n"
    text += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    text += "print('ready', flush=True)\nend = time.monotonic() + 20\n"
    text += "while time.monotonic() < end: pass\n"
    command = ("run", "--python", newest.command()[0], script(tmp_path, text))
    sampler = pystrobe.start(*command)
    assert sampler.stdout
    assert sampler.stdout.readline() == "ready\n"
    time.sleep(0.5)
    sampler.send_signal(signal.SIGTERM)
    _, err = sampler.communicate(timeout=30)
    assert sampler.returncode == 7, err
    assert "self %" in err


def test_run_leaves_ctrl_c_to_the_program(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    text = "import sys, time\nprint('ready', flush=True)\n"
    # Not an empty loop: 3.11 compiles one so that no handler covers it.
    text += "try:\n    while True: sum(range(9))\n"
    text += "except KeyboardInterrupt:\n    print('caught')\n"
    text += "end = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\nsys.exit(5)\n"
    shown = OnTerminal(
        *(str(pystrobe.executable), "run", "--python", newest.command()[0]),
        script(tmp_path, text),
    )
    shown.read_until("ready")
    time.sleep(0.5)
    shown.type("\x03")
    assert shown.finish() == 5, shown.text
    assert "caught" in shown.text
    assert "self %" in shown.text


def test_run_passes_a_hangup_on(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    """Only the session's leader is sent it: pystrobe itself, under `ssh -t` or `docker -it`."""
    text = "print('ready', flush=True)\nwhile True: sum(range(1000))\n"
    shown = OnTerminal(
        *(str(pystrobe.executable), "run", "--python", newest.command()[0]),
        script(tmp_path, text),
    )
    shown.read_until("ready")
    time.sleep(0.5)
    assert shown.hang_up() == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGALRM, signal.SIGQUIT])
def test_signals_sent_to_run_are_for_the_program(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path, number: signal.Signals
) -> None:
    text = "import signal, sys\n"
    text += f"signal.signal({int(number)}, lambda *_: sys.exit(5))\n"
    text += "print('ready', flush=True)\nwhile True: sum(range(1000))\n"
    command = ("run", "--python", newest.command()[0], script(tmp_path, text))
    sampler = pystrobe.start(*command)
    assert sampler.stdout
    sampler.stdout.readline()
    time.sleep(0.5)
    sampler.send_signal(number)
    _, err = sampler.communicate(timeout=30)
    assert sampler.returncode == 5, err
    assert "self %" in err


def test_run_what_is_not_python(pystrobe: Pystrobe) -> None:
    finished = pystrobe.run("run", "--", "sh", "-c", "sleep 0.2; exit 4")
    assert finished.code == 4
    assert "nothing was sampled" in finished.err
    assert "exec python3" in finished.err


FORKING = """
import os, time
if os.fork() == 0:
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    os._exit(0)
os.wait()
"""


def test_run_tells_of_children_and_of_a_thread_that_is_not_there(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    finished = run_python(pystrobe, newest, "--thread", "nosuch", script(tmp_path, FORKING))
    assert "no thread matches 'nosuch' so far" in finished.err
    assert finished.err.count("the recording has: ") == 1
    assert re.search(
        r"child processes that have ended used [\d.]+ m?s of CPU time and were not", finished.err
    )


def test_run_tells_the_status_where_ended_children_are_ignored(pystrobe: Pystrobe) -> None:
    with subprocess.Popen(
        [str(pystrobe.executable), "run", "--", "sh", "-c", "exit 3"],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    ) as process:
        assert process.wait(timeout=30) == 3


def test_run_goes_on_unsampled_where_no_thread_may_start(pystrobe: Pystrobe) -> None:
    finished = without_threads(pystrobe, "run", "--", "sh", "-c", "sleep 0.2; exit 4")
    assert finished.code == 4, finished
    assert "the program runs, but is not sampled: cannot start a thread" in finished.err
    assert "ulimit -u" in finished.err


@NEEDS_STRACE
def test_run_forwards_nothing_to_a_program_that_is_reaped(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    """Its pid may be another process' by then. strace holds us where that is so."""
    log = tmp_path / "calls"
    tracing = ("-e", "trace=wait4,kill", "-e", "inject=wait4:delay_exit=2000000", "-o", str(log))
    command = (*tracing, str(pystrobe.executable), "run", "--", "sh", "-c", "exit 4")
    with subprocess.Popen(
        ["strace", *command], stderr=subprocess.DEVNULL, start_new_session=True
    ) as strace:
        deadline = time.monotonic() + 20
        while not (log.exists() and "wait4" in log.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (traced,) = Path(f"/proc/{strace.pid}/task/{strace.pid}/children").read_text().split()
        os.kill(int(traced), signal.SIGTERM)
        assert strace.wait(timeout=30) == 4
    assert "SIGTERM" in log.read_text()
    assert "kill(" not in log.read_text()


def test_run_very_short_program(pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path) -> None:
    finished = run_python(pystrobe, newest, script(tmp_path, "pass\n"))
    assert finished.code == 0, finished


def test_run_what_is_not_there(pystrobe: Pystrobe, tmp_path: Path) -> None:
    finished = pystrobe.run("run", "--", "no-such-command-anywhere")
    assert finished.code == 127
    assert "no-such-command-anywhere" in finished.err
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert pystrobe.run("run", "--", str(plain)).code == 126
    finished = pystrobe.run("run", "no-such-script.py")
    assert finished.code == 1
    assert "no-such-script.py" in finished.err


@ROOT_ONLY
def test_under_sudo_program_and_files_are_the_users(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    nobody = 65534
    command = ["/usr/bin/python3"] if os.path.exists("/usr/bin/python3") else newest.command()
    text = "import os; print(os.getuid(), os.getgid(), sorted(os.getgroups()))"
    arguments = ["--", command[0], "-c", text + "\n" + BUSY]
    environment = {**os.environ, "SUDO_UID": str(nobody), "SUDO_GID": str(nobody)}
    outputs = [tmp_path / name for name in ("x.json", "x.html", "x.strobe")]
    options = [word for output in outputs for word in ("-o", str(output))]
    finished = pystrobe.run("run", *options, *arguments, env=environment)
    assert finished.code == 0, finished
    assert finished.out == f"{nobody} {nobody} [{nobody}]\n"
    for output in outputs:
        assert (output.stat().st_uid, output.stat().st_gid) == (nobody, nobody), output


@ROOT_ONLY
def test_under_sudo_what_attach_and_report_write_is_the_users(
    pystrobe: Pystrobe, newest: Interpreter, tmp_path: Path
) -> None:
    nobody = 65534
    environment = {**os.environ, "SUDO_UID": str(nobody), "SUDO_GID": str(nobody)}
    outputs = [tmp_path / name for name in ("x.json", "x.html", "x.strobe")]
    options = [word for output in outputs for word in ("-o", str(output))]
    with running(newest, "tower") as target:
        attach = ("attach", str(target.pid), "-d", "0.3", *options)
        pystrobe.succeed(*attach, env=environment)
    outputs.append(tmp_path / "again.html")
    pystrobe.succeed("report", str(outputs[2]), "-o", str(outputs[3]), env=environment)
    for output in outputs:
        assert (output.stat().st_uid, output.stat().st_gid) == (nobody, nobody), output
