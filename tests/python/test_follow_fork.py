# SPDX-License-Identifier: Apache-2.0
"""A program that samples itself, and its children made by fork, each into its own file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from own_interpreters import THIS, Own
from own_program import MODES, WORK
from pystrobe_command import Pystrobe

package = pytest.importorskip("pystrobe", reason="the package is not installed: make build")

FORKS = (
    WORK
    + """
import json, os, signal, sys, pystrobe
OUT, OPTIONS, LEAVES = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]

def in_parent(): spin(0.1)
def in_child(): spin(0.1)
def in_grandchild(): spin(0.1)
def after(): spin(0.1)

def leave():
    if LEAVES == "end":
        sys.exit(0)
    if LEAVES == "_exit":
        os._exit(0)
    time.sleep(0.2)
    os.kill(os.getpid(), getattr(signal, LEAVES))

pystrobe.enable(output=OUT, follow_fork=True, **OPTIONS)
in_parent()
pids = []
for grand in (False, True):
    pid = os.fork()
    if pid == 0:
        in_child()
        below = os.fork() if grand else -1
        if below == 0:
            in_grandchild()
            leave()
        if grand:
            with open(f"{OUT}.below", "w") as told:
                told.write(str(below))
            os.waitpid(below, 0)
        leave()
    pids.append(pid)
statuses = [os.waitpid(pid, 0)[1] for pid in pids]
after()
pystrobe.disable()
below = int(open(f"{OUT}.below").read())
os.unlink(f"{OUT}.below")
print(json.dumps({"pids": [os.getpid(), *pids, below], "statuses": statuses}))
"""
)


def forks(own: Own, out: Path, leaves: str, **options: object) -> list[int]:
    """The process ids: of the program, its two children, and the second one's child."""
    done = subprocess.run(
        [*own.command, *QUIETLY, "-c", FORKS, own.seen(out), json.dumps(options), leaves],
        env=own.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    killed = getattr(signal, leaves) if leaves.startswith("SIG") else 0
    assert set(said["statuses"]) == {killed}
    return list(said["pids"])


def functions(path: Path) -> set[str]:
    return {function.name for function in package.read(path).functions}


# From 3.12 on os.fork warns of any thread but the main one, and sampling has threads.
QUIETLY = ("-W", "ignore::DeprecationWarning")
OWN_WORK = {"in_parent", "in_child", "in_grandchild", "after"}


def check(directory: Path, pids: list[int], suffix: str = ".strobe") -> None:
    """Each has what its process did, and nothing else."""
    parent, first, second, grandchild = pids
    names = {f"out{suffix}", *(f"out.{pid}{suffix}" for pid in pids[1:])}
    assert {path.name for path in directory.iterdir()} == names
    told = {pid: functions(directory / f"out.{pid}.strobe") & OWN_WORK for pid in (first, second)}
    assert told == {first: {"in_child"}, second: {"in_child"}}
    assert functions(directory / f"out.{grandchild}.strobe") & OWN_WORK == {"in_grandchild"}
    own = package.read(directory / "out.strobe")
    assert {f.name for f in own.functions} & OWN_WORK == {"in_parent", "after"}
    assert own.metadata.pid == parent or own.metadata.pid > 0
    for pid in pids[1:]:
        report = package.read(directory / f"out.{pid}.strobe")
        assert report.quality.taken > 20


def check_whole(directory: Path, pids: list[int]) -> None:
    check(directory, pids)
    for pid in pids[1:]:
        assert package.read(directory / f"out.{pid}.strobe").quality.complete


def test_each_child_has_its_own_recording(own: Own, tmp_path: Path) -> None:
    directory = own.directory(tmp_path)
    check_whole(directory, forks(own, directory / "out.strobe", "_exit"))


def test_the_end_of_a_child_ends_its_recording(tmp_path: Path) -> None:
    check_whole(tmp_path, forks(THIS, tmp_path / "out.strobe", "end"))


@pytest.mark.parametrize("options", [{"native": True}, {"mode": "wall"}, {"threads": "current"}])
def test_in_each_way_of_sampling(options: dict[str, Any], tmp_path: Path) -> None:
    check(tmp_path, forks(THIS, tmp_path / "out.strobe", "_exit", **options))


@pytest.mark.parametrize("leaves", ["SIGTERM", "SIGKILL"])
def test_of_a_child_that_is_killed_most_is_there(leaves: str, tmp_path: Path) -> None:
    """It ran for a part of a second."""
    check(tmp_path, forks(THIS, tmp_path / "out.strobe", leaves))


@pytest.mark.parametrize(("leaves", "left"), [("_exit", ".html"), ("SIGKILL", ".strobe")])
def test_another_format_takes_the_recordings_place(leaves: str, left: str, tmp_path: Path) -> None:
    pids = forks(THIS, tmp_path / "out.html", leaves)
    assert {path.name for path in tmp_path.iterdir()} == {
        "out.html",
        *(f"out.{pid}{left}" for pid in pids[1:]),
    }
    page = (tmp_path / f"out.{pids[1]}{left}").read_bytes()
    assert page.startswith(b"<!") == (left == ".html")


def run(code: str, *arguments: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, *QUIETLY, "-c", WORK + code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout.splitlines()[-1])


@MODES
def test_a_pools_workers_are_each_sampled(mode: str, tmp_path: Path) -> None:
    """Those that end by themselves, and those that terminate() kills."""
    said = run(
        """
import json, multiprocessing, os, sys, pystrobe
def task(_):
    burn50()
    return os.getpid()
fork = multiprocessing.get_context("fork")
with pystrobe.Profiler(mode=sys.argv[2], output=sys.argv[1], follow_fork=True):
    pool = fork.Pool(2)
    ended = pool.map(task, range(6), chunksize=1)
    pool.close()
    pool.join()
    with fork.Pool(2) as pool:
        killed = pool.map(task, range(12), chunksize=1)
print(json.dumps([list(set(ended)), list(set(killed))]))
""",
        str(tmp_path / "out.strobe"),
        mode,
    )
    ended, killed = said
    assert ended
    assert killed
    for pid in ended + killed:
        report = package.read(tmp_path / f"out.{pid}.strobe")
        assert "task" in {function.name for function in report.functions}
        assert report.metadata.pid == pid
        assert report.quality.complete == (pid in ended)


def test_a_child_may_end_its_sampling_itself(tmp_path: Path) -> None:
    """disable() there gives the child's own profile, and os._exit is what it was."""
    pid = run(
        """
import json, os, sys, pystrobe
leave = os._exit
pystrobe.enable(output=sys.argv[1], follow_fork=True)
burn30()
pid = os.fork()
if pid == 0:
    burn50()
    names = {f.name for f in pystrobe.disable().report().functions}
    burn20()
    os._exit(0 if "burn50" in names and "burn30" not in names else 1)
status = os.waitpid(pid, 0)[1]
assert status == 0, status
assert os._exit is leave
names = {f.name for f in pystrobe.disable().report().functions}
assert "burn30" in names and "burn50" not in names, names
print(json.dumps(pid))
""",
        str(tmp_path / "out.strobe"),
    )
    assert "burn20" not in functions(tmp_path / f"out.{pid}.strobe")


@pytest.mark.parametrize("native", [False, True])
def test_forks_while_threads_start_and_stop_are_no_trouble(native: bool, tmp_path: Path) -> None:
    """Of what is at work in the parent, no lock stays closed in the child."""
    said = run(
        f"NATIVE = {native}"
        """
import json, os, sys, threading, pystrobe
ended = False
def come_and_go():
    while not ended:
        thread = threading.Thread(target=spin, args=(0.002,))
        thread.start()
        thread.join()
pystrobe.enable(output=sys.argv[1], follow_fork=True, rate=5000, native=NATIVE)
thread = threading.Thread(target=come_and_go)
thread.start()
statuses = []
for _ in range(25):
    pid = os.fork()
    if pid == 0:
        spin(0.01)
        os._exit(0)
    statuses.append(os.waitpid(pid, 0)[1])
ended = True
thread.join()
pystrobe.disable()
print(json.dumps(statuses))
""",
        str(tmp_path / "out.strobe"),
    )
    assert said == [0] * 25
    made = list(tmp_path.glob("out.*.strobe"))
    assert len(made) == 25
    assert all(package.read(path).quality.complete for path in made)


def test_without_being_asked_a_child_is_not_sampled(tmp_path: Path) -> None:
    run(
        """
import json, os, sys, pystrobe
pystrobe.enable(output=sys.argv[1])
pid = os.fork()
if pid == 0:
    burn50()
    os._exit(0)
os.waitpid(pid, 0)
print(json.dumps(None))
""",
        str(tmp_path / "out.html"),
    )
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    """As of a process of before, that had the same number."""
    pids = run(
        """
import json, os, sys, pystrobe
from pystrobe._follow import Child, beside
taken = [sys.argv[1].replace("out.", f"out.{os.getpid()}{more}.") for more in ("", "-2")]
for name in taken:
    with open(name, "w") as file:
        file.write("mine")
child = Child(beside(sys.argv[1]))
assert child.output == taken[0].replace(str(os.getpid()), f"{os.getpid()}-3"), child.output
assert [open(name).read() for name in taken] == ["mine", "mine"]
print(json.dumps(os.getpid()))
""",
        str(tmp_path / "out.html"),
    )
    assert (tmp_path / f"out.{pids}-3.strobe").exists()


PROGRAM = (
    WORK
    + """
import os
import pystrobe.auto
burn30()
pid = os.fork()
burn50() if pid == 0 else os.waitpid(pid, 0)
"""
)


@pytest.mark.parametrize("output", ["out.strobe", "out-{pid}.strobe"])
def test_by_the_environment(output: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    subprocess.run(
        [sys.executable, str(program)],
        check=True,
        cwd=tmp_path,
        timeout=60,
        env={**os.environ, "PYSTROBE_ENABLE": f"follow_fork=1,output={output}"},
    )
    made = sorted(
        tmp_path.glob("out*.strobe"), key=lambda path: package.read(path).metadata.start_unix_ns
    )
    told = [functions(path) & {"burn30", "burn50"} for path in made]
    assert told == [{"burn30"}, {"burn50"}]
    pid = package.read(made[1]).metadata.pid
    assert made[1].name == output.replace("{pid}", str(pid)).replace("t.s", f"t.{pid}.s")


def test_of_run_each_child_has_all_outputs(pystrobe: Pystrobe, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FORK_BY_POOL)
    outputs = [tmp_path / "out,;%.strobe", tmp_path / "page.html"]
    old = tmp_path / "out,;%.1.strobe"
    old.write_text("of before")
    done = pystrobe.run(
        *("run", "--in-process", "--follow-fork", "--python", sys.executable),
        *(word for output in outputs for word in ("-o", str(output))),
        str(program),
    )
    assert done.code == 0, done.err
    pids = [int(word) for word in done.out.split()]
    assert pids
    for pid in pids:
        recording = tmp_path / f"out,;%.{pid}.strobe"
        assert "task" in pystrobe.run("report", str(recording)).out
        assert (tmp_path / f"page.{pid}.html").read_text().startswith("<!")
        assert recording.name in done.err
    assert " spin " in done.err
    assert "were not sampled" not in done.err
    assert old.read_text() == "of before"


def test_of_run_what_could_not_be_written_stays_a_recording(
    pystrobe: Pystrobe, tmp_path: Path
) -> None:
    """And that is what is named, not the file that is not there."""
    program = tmp_path / "program.py"
    taken = f"open({str(tmp_path)!r} + '/page.%d.json' % os.getpid(), 'w').write('taken')"
    program.write_text(
        f"import os\nos.register_at_fork(after_in_child=lambda: {taken})\n" + FORK_BY_POOL
    )
    done = pystrobe.run(
        *("run", "--in-process", "--follow-fork", "--python", sys.executable),
        *("-o", str(tmp_path / "out.html"), "-o", str(tmp_path / "page.json"), str(program)),
    )
    pids = [int(word) for word in done.out.split()]
    assert pids
    for pid in pids:
        assert "task" in pystrobe.succeed("report", str(tmp_path / f"out.{pid}.strobe")).out
        assert f"out.{pid}.strobe" in done.err
        assert f"page.{pid}.json" in done.err
        assert (tmp_path / f"page.{pid}.json").read_text() == "taken"


def test_of_run_a_page_alone_takes_the_recordings_place(pystrobe: Pystrobe, tmp_path: Path) -> None:
    """A child that only becomes another program leaves nothing."""
    program = tmp_path / "program.py"
    program.write_text(
        FORK_BY_POOL
        + "import os, sys\nif os.fork() == 0: os.execv('/bin/true', ['true'])\nos.wait()\n"
    )
    done = pystrobe.run(
        *("run", "--in-process", "--follow-fork", "--python", sys.executable),
        *("-o", str(tmp_path / "out.html"), str(program)),
    )
    assert done.code == 0, done.err
    pids = done.out.split()
    made = {path.name for path in tmp_path.iterdir()} - {program.name}
    assert made == {"out.html", *(f"out.{pid}.html" for pid in pids)}


FORK_BY_POOL = (
    WORK
    + """
import multiprocessing, os
def in_parent(): spin(0.1)
def task(_):
    spin(0.2)
    return os.getpid()
in_parent()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*set(pool.map(task, range(4), chunksize=1)))
"""
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"follow_fork": True}, "without an output"),
        ({"follow_fork": True, "mode": "gpu", "output": "a.strobe"}, "mode='gpu'"),
        ({"output": "a.strobe", "schedule": print}, "several profiles"),
        ({"output": "a.pstats"}, "which samples do not tell"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(package.InvalidArgumentError, match=message):
        package.Profiler(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--follow-fork", "-o", "a.strobe", "a.py"), "for sampling from inside"),
        (("--in-process", "--follow-fork", "a.py"), "needs a file"),
        (("--in-process", "--follow-fork", "-o", "/dev/null", "-f", "html"), "needs a file"),
    ],
)
def test_run_refuses_what_has_no_effect(
    pystrobe: Pystrobe, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    program = tmp_path / "a.py"
    program.write_text("print('it ran')")
    words = [*options] if options[-1] == "a.py" else [*options, "a.py"]
    done = pystrobe.run("run", *words, cwd=str(tmp_path))
    assert done.code != 0
    assert message in done.err
    assert "it ran" not in done.out
