# SPDX-License-Identifier: Apache-2.0
"""Sampling from inside without touching the program: `run --in-process`, and pystrobe.auto."""

from __future__ import annotations

import json
import os
import pstats
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pystrobe_command import Pystrobe, Recorded
from readers import annotated_calls
from test_outputs import small_disk

pytestmark = pytest.mark.beside_others

pytest.importorskip("pystrobe", reason="the package is not installed: make build")

PROGRAM = """
import json, os, subprocess, sys, time

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))

if __name__ == "__main__":
    burn(0.3)
    look = "import os, sys; print('pystrobe' in sys.modules, dict(os.environ))"
    child = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert child.stdout.startswith("False"), child.stdout
    for name in ("PYSTROBE_ENABLE", "PYSTROBE_LAUNCH", "_bootstrap"):
        assert name not in child.stdout, child.stdout
    print(json.dumps({"argv": sys.argv, "path": sys.path[0], "main": __name__,
        "pythonpath": os.environ.get("PYTHONPATH"), "custom": os.environ.get("CUSTOM")}))
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run_inside(
    pystrobe: Pystrobe, program: Path, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(str(pystrobe.executable), "run", "--in-process", "--python", sys.executable),
            *(*options, str(program), "3", "-o", "b"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(("options", "engine"), [((), "signal"), (("--mode", "wall"), "preempt")])
@pytest.mark.alone
def test_the_program_is_what_it_would_be(
    pystrobe: Pystrobe, program: Path, options: tuple[str, ...], engine: str
) -> None:
    recording = program.with_suffix(".strobe")
    page = program.with_suffix(".html")
    done = run_inside(
        pystrobe, program, *options, "-r", "1000", "-o", str(recording), "-o", str(page)
    )
    assert done.returncode == 3, done.stderr
    said = json.loads(done.stdout)
    assert said["argv"] == [str(program), "3", "-o", "b"]
    assert said["path"] == str(program.parent)
    assert said["main"] == "__main__"
    assert said["pythonpath"] is None
    assert page.read_text().startswith("<!")
    report = json.loads(pystrobe.run("report", str(recording), "-f", "json").out)
    assert report["metadata"]["pause_mode"] == engine
    assert report["quality"]["complete"]
    assert report["quality"]["taken"] > 200
    stacks = Recorded(pystrobe, recording, pystrobe.run("--version")).collapsed()
    burning = [stack for stack in stacks if stack.frames and stack.frames[-1].name == "burn"]
    assert burning
    for stack in burning:
        assert [frame.name for frame in stack.frames] == ["<module>", "burn"]
        assert stack.frames[0].file == "program.py"
    assert not any(frame.file == "_launch.py" for stack in stacks for frame in stack.frames)


def test_c_functions_are_shown_on_request(pystrobe: Pystrobe, program: Path) -> None:
    program.write_text(
        "import zlib\nfor _ in range(30):\n    zlib.compress(bytes(range(256)) * 4000, 6)\n"
    )
    done = run_inside(pystrobe, program, "--native")
    assert done.returncode == 0, done.stderr
    assert "deflate" in done.stderr
    without = run_inside(pystrobe, program)
    assert "deflate" not in without.stderr


def test_the_environment_keeps_its_own_customization(
    pystrobe: Pystrobe, program: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.environ['CUSTOM'] = 'yes'\n")
    done = run_inside(pystrobe, program, PYTHONPATH=str(own))
    assert done.returncode == 3, done.stderr
    said = json.loads(done.stdout)
    assert said["custom"] == "yes"
    assert said["pythonpath"] == str(own)
    assert "burn" in done.stderr
    assert "by perf task clock" in done.stderr or "by CPU timer" in done.stderr


def test_what_a_killed_program_recorded_is_kept(pystrobe: Pystrobe, program: Path) -> None:
    program.write_text(PROGRAM.replace("burn(0.3)", "burn(1.8); os.kill(os.getpid(), 9)"))
    recording = program.with_suffix(".strobe")
    done = run_inside(pystrobe, program, "-o", str(recording))
    assert done.returncode == 128 + signal.SIGKILL
    assert "cut off" in done.stderr
    assert "burn" in pystrobe.run("report", str(recording)).out


def test_an_interpreter_without_the_package_is_told(pystrobe: Pystrobe, program: Path) -> None:
    done = subprocess.run(
        [
            *(str(pystrobe.executable), "run", "--in-process"),
            *("--python", "/usr/bin/python3", str(program), "0"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.returncode == 1
    assert "nothing was recorded inside the program" in done.stderr
    assert "/usr/bin/python3 -m pip install DIRECTORY" in done.stderr


def test_an_old_recording_is_not_taken_for_this_one(pystrobe: Pystrobe, program: Path) -> None:
    recording = program.with_suffix(".strobe")
    assert run_inside(pystrobe, program, "-o", str(recording)).returncode == 3
    before = recording.read_bytes()
    done = pystrobe.run(
        *("run", "--in-process", "--python", "/usr/bin/python3", "-o", str(recording), "--force"),
        *(str(program), "0"),
    )
    assert "nothing was recorded inside the program" in done.err
    assert recording.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_loses_nothing(pystrobe: Pystrobe, program: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program.write_text(PROGRAM.replace("burn(0.3)", "burn(1.5)"))
    with small_disk(tmp_path / "small", "4k") as disk:
        done = run_inside(pystrobe, program, "-o", f"{disk}/a.strobe", TMPDIR=str(temporary))
    assert done.returncode == 3, done.stderr
    assert "sampling ended early" in done.stderr
    assert "nothing recorded is lost" in done.stderr
    (kept,) = temporary.glob("pystrobe-*.strobe")
    assert "burn" in pystrobe.run("report", str(kept)).out


def test_what_could_be_kept_is_told_as_such(
    pystrobe: Pystrobe, program: Path, tmp_path: Path
) -> None:
    """A limit on the size of files holds for those in memory too."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))\n"
    program.write_text(limit + PROGRAM.replace("burn(0.3)", "burn(1.5)"))
    recording = program.with_suffix(".strobe")
    done = run_inside(pystrobe, program, "-o", str(recording), TMPDIR=str(tmp_path))
    assert done.returncode == 3, done.stderr
    assert "what could be kept is in" in done.stderr
    assert "nothing recorded is lost" not in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pause", "none", "a.py"), "concerns sampling from outside"),
        (("-d", "1", "a.py"), "-d 1 has no use"),
        (("--max-overhead", "1%", "a.py"), "limits nothing"),
        (("--native", "--mode", "wall", "a.py"), "--native is for CPU time"),
        (("--", "ls"), "a command of its own"),
    ],
)
def test_what_means_nothing_inside_is_refused(
    pystrobe: Pystrobe, options: tuple[str, ...], message: str
) -> None:
    done = pystrobe.run("run", "--in-process", *options)
    assert done.code == 2
    assert message in done.err


CALLS = """
import sys, threading

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

helper = threading.Thread(target=fib, args=(10,), name="helper")
helper.start()
helper.join()
fib(15)
print(sys.argv[1:])
sys.exit(3)
"""


@pytest.mark.parametrize(
    "engine", ["setprofile", "monitoring" if sys.version_info >= (3, 12) else "auto"]
)
def test_every_call_of_a_program_is_traced(pystrobe: Pystrobe, tmp_path: Path, engine: str) -> None:
    program, recording = tmp_path / "calls.py", tmp_path / "calls.strobe"
    program.write_text(CALLS)
    done = pystrobe.run(
        *("trace", "--python", sys.executable, "-o", str(recording), "--engine", engine),
        *(str(program), "--engine", "of its own"),
    )
    assert done.code == 3, done.err
    assert done.out == "['--engine', 'of its own']\n"
    assert "every call of Python traced" in done.err
    (row,) = [line for line in done.err.splitlines() if " fib " in line]
    assert row.split()[0] == "2,150"
    report = json.loads(pystrobe.run("report", str(recording), "-f", "json").out)
    assert report["metadata"]["pause_mode"] == "trace"
    assert {thread["name"] for thread in report["threads"]} == {"MainThread", "helper"}
    stacks = Recorded(pystrobe, recording, pystrobe.run("--version")).collapsed()
    roots = {stack.frames[0].name for stack in stacks if stack.thread.startswith("MainThread")}
    assert "<module>" in roots
    assert not any("pystrobe" in frame.file for stack in stacks for frame in stack.frames)
    assert "calls self %" in pystrobe.run("report", str(recording)).out
    part = pystrobe.run("report", str(recording), "--since", "1ms")
    assert part.code != 0
    assert "not of a part of its time" in part.err


def test_a_program_that_cannot_be_traced_as_asked_does_not_begin(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('it ran')")
    other = "frame-eval" if sys.version_info >= (3, 12) else "monitoring"
    done = pystrobe.run("trace", "--python", sys.executable, "--engine", other, str(program))
    assert done.code != 0
    assert done.out == ""
    assert 'Use the engine "auto".' in done.err
    assert "nothing was recorded" not in done.err, "that it was told why is enough"


def test_calls_are_read_by_the_readers_of_calls(pystrobe: Pystrobe, tmp_path: Path) -> None:
    program, callgrind, dumped = (tmp_path / name for name in ("a.py", "a.callgrind", "a.pstats"))
    program.write_text(CALLS)
    done = pystrobe.run(
        *("trace", "--python", sys.executable, "-o", str(callgrind), "-o", str(dumped)),
        str(program),
    )
    assert done.code == 3, done.err
    stats: Any = pstats.Stats(str(dumped))
    rows = {name: sums for (_, _, name), sums in stats.stats.items()}
    primitive, calls, own, total, callers = rows["fib"]
    assert (primitive, calls) == (2, 2150)
    # As cProfile has it: of callers all calls come first.
    assert sum(caller[0] for caller in callers.values()) == 2150
    assert callers[next(key for key in callers if key[2] == "fib")][:2] == (2148, 4)
    assert 0 < own <= total < rows["<module>"][3]
    stats.print_callers("fib")
    annotated = annotated_calls(callgrind)
    assert annotated["fib"] == round(own * 1e9)


def test_samples_do_not_fill_formats_of_calls(pystrobe: Pystrobe, program: Path) -> None:
    recording = program.with_suffix(".strobe")
    assert run_inside(pystrobe, program, "-o", str(recording)).returncode == 3
    asked = pystrobe.run("report", str(recording), "-f", "pstats", "-o", str(program.parent / "a"))
    assert asked.code == 1
    assert "samples do not tell" in asked.err
    refused = pystrobe.run("run", "-o", "a.callgrind", str(program))
    assert refused.code == 2
    assert "pystrobe trace" in refused.err


def test_functions_of_c_are_traced_on_request(pystrobe: Pystrobe, tmp_path: Path) -> None:
    program = tmp_path / "builtins.py"
    program.write_text("for word in 'a', 'b':\n    word.upper()\n")
    done = pystrobe.run(
        "trace", "--builtins", "--top", "999", "--python", sys.executable, str(program)
    )
    assert done.code == 0, done.err
    (row,) = [line for line in done.err.splitlines() if " str.upper " in line]
    assert row.split()[0] == "2"


def test_only_some_functions_of_a_program_are_traced(pystrobe: Pystrobe, tmp_path: Path) -> None:
    program, recording = tmp_path / "a,b;c%2c.py", tmp_path / "a.strobe"
    program.write_text(CALLS)
    done = pystrobe.run(
        *("trace", "--python", sys.executable, "-o", str(recording), "--no-stdlib"),
        *("--include", "nothing", "--include", str(program), "--exclude", "<mod*", str(program)),
    )
    assert done.code == 3, done.err
    report = json.loads(pystrobe.run("report", str(recording), "-f", "json").out)
    assert {function["name"] for function in report["functions"]} == {"fib"}


def test_a_program_that_leaves_at_once_is_told_to_leave_no_trace(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    program = tmp_path / "leaves.py"
    program.write_text("import os\nos._exit(4)\n")
    done = pystrobe.run("trace", "--python", sys.executable, str(program))
    assert done.code == 4
    assert "nothing was recorded" in done.err
    assert "os._exit" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.parametrize(
    ("options", "told"),
    [((), "nothing recorded is lost"), (("--timeline",), "all but the timeline is in")],
)
def test_a_trace_is_not_lost_on_a_full_disk(
    pystrobe: Pystrobe, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    temporary, program = tmp_path / "temporary", tmp_path / "many.py"
    temporary.mkdir()
    program.write_text(
        "import random\n"
        "for i in range(2000):\n"
        "    name = f'function{i}_{random.getrandbits(99)}'\n"
        "    exec(f'def {name}(): pass\\n{name}()')\n"
    )
    with small_disk(tmp_path / "small", "4k") as disk:
        done = subprocess.run(
            [
                *(str(pystrobe.executable), "trace", "--python", sys.executable),
                *("-o", f"{disk}/a.strobe", *options, str(program)),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    assert done.returncode == 0, done.stderr
    assert "the trace could not be written" in done.stderr
    assert told in done.stderr
    assert "Nothing was called" not in done.stderr
    assert "wrote" not in done.stderr
    (kept,) = temporary.glob("pystrobe-*.strobe")
    assert "function1999" in pystrobe.run("report", str(kept), "-f", "collapsed").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "fast", "a.py"), "--engine 'fast' is not known"),
        (("--engine", "frame-eval", "--builtins", "a.py"), "--builtins has no effect"),
        (("--idle", "a.py"), "--idle has no effect"),
        (("--mode", "gil", "a.py"), "do not tell who had the interpreter's lock"),
        (("-r", "100", "a.py"), "there is no option '-r'"),
        (("--", "ls"), "a command of its own"),
        ((), "the program to run is missing"),
        (("-o", "-", "-f", "html", "a.py"), "cannot write to standard output"),
    ],
)
def test_what_means_nothing_to_a_trace_is_refused(
    pystrobe: Pystrobe, options: tuple[str, ...], message: str
) -> None:
    done = pystrobe.run("trace", *options)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("verb", [("run", "--in-process"), ("trace",)])
def test_a_program_that_is_interrupted_ends_so(
    pystrobe: Pystrobe, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    program = tmp_path / "interrupted.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n" + "pass\n" * 9)
    alone = subprocess.run([sys.executable, str(program)], capture_output=True)
    done = pystrobe.run(*verb, "--python", sys.executable, str(program))
    assert alone.returncode == -signal.SIGINT
    assert done.code == 128 + signal.SIGINT, done.err
    assert "KeyboardInterrupt" in done.err


def test_threads_that_have_no_names_lose_no_trace(pystrobe: Pystrobe, tmp_path: Path) -> None:
    program = tmp_path / "hostile.py"
    program.write_text("import threading\nthreading.enumerate = None\n(lambda: 0)()\n")
    done = pystrobe.run("trace", "--top", "999", "--python", sys.executable, str(program))
    assert done.code == 0
    assert "<lambda>" in done.err


AUTO = "import pystrobe.auto\nsum(i * i for i in range(10**6))\nraise SystemExit(3)\n"


def run_auto(tmp_path: Path, setting: str, code: str = AUTO) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYSTROBE_ENABLE": setting},
    )


def test_a_program_is_sampled_that_imports_auto(tmp_path: Path) -> None:
    done = run_auto(tmp_path, "1")
    assert done.returncode == 3
    assert "Quality: " in done.stderr
    assert "<genexpr>" in done.stderr
    assert run_auto(tmp_path, "mode=trace,output=calls.pstats").returncode == 3
    assert any(key[2] == "<genexpr>" for key in pstats.Stats(str(tmp_path / "calls.pstats")).stats)
    done = run_auto(tmp_path, "mode=wall,rate=500,output=work-{pid}.html")
    assert done.returncode == 3
    assert done.stderr == ""
    assert [path.name.startswith("work-") for path in tmp_path.glob("*.html")] == [True]
    done = run_auto(tmp_path, "")
    assert (done.returncode, done.stderr) == (3, "")


def test_auto_samples_the_thread_alone_that_imports_it(tmp_path: Path) -> None:
    code = """
import threading
import pystrobe.auto
def burn():
    sum(i * i for i in range(10**6))
other = threading.Thread(target=burn, name="other")
other.start()
burn()
other.join()
"""
    for threads, seen in (("current", {"MainThread"}), ("all", {"MainThread", "other"})):
        done = run_auto(tmp_path, f"threads={threads},output={threads}.json", code)
        assert (done.returncode, done.stderr) == (0, "")
        report = json.loads((tmp_path / f"{threads}.json").read_text())
        assert {thread["name"] for thread in report["threads"]} == seen


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rat=500", "'rat=500' is no setting"),
        ("rate=fast", "rate is 'fast'"),
        ("gpu=2", "gpu is '2'"),
        ("mode=cpu,rate=-1", "the rate is -1"),
        ("mode=typo", "one of cpu, wall, gpu, trace"),
        ("threads=some", "one of all, current"),
        ("output=none/work.html", "none/work.html"),
        ("output=work.xyz", "work.xyz"),
    ],
)
def test_what_is_wrong_does_not_change_the_end(tmp_path: Path, setting: str, message: str) -> None:
    done = run_auto(tmp_path, setting)
    assert done.returncode == 3
    assert done.stderr.startswith("pystrobe: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_is_traced_that_imports_auto(tmp_path: Path) -> None:
    done = run_auto(tmp_path, "mode=trace")
    assert done.returncode == 3
    assert "every call of Python traced" in done.stderr
    assert "<genexpr>" in done.stderr


def test_settings_of_samples_mean_nothing_to_a_trace(tmp_path: Path) -> None:
    done = run_auto(tmp_path, "mode=trace,rate=100")
    assert done.returncode == 3
    assert "rate has no meaning with mode=trace" in done.stderr
    assert "threads has no meaning" in run_auto(tmp_path, "mode=trace,threads=all").stderr
    assert "engine has no meaning" in run_auto(tmp_path, "engine=auto").stderr
