# SPDX-License-Identifier: Apache-2.0
"""A program that samples itself, beside others that have handlers, timers, threads and children."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from own_program import MODES, WORK, answer, run
from running import TARGETS

pytest.importorskip("pystrobe", reason="the package is not installed: make build")


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, to load by ctypes."""
    built = tmp_path_factory.mktemp("c") / "c_neighbours.so"
    source = TARGETS / "c_neighbours.c"
    compiler = ["cc", "-shared", "-fPIC", "-O1", "-pthread", "-o", str(built), str(source)]
    subprocess.run(compiler, check=True)
    return str(built)


@MODES
def test_faulthandler_tells_stacks_and_crashes(mode: str, tmp_path: Path) -> None:
    """From a thread of its own while we sample, and by its handler for SIGSEGV."""
    told = tmp_path / "told"
    finished = run(
        f"""
import ctypes, faulthandler, sys, pystrobe
faulthandler.enable()
with open({str(told)!r}, "w") as file, pystrobe.Profiler(mode=MODE, rate=1000) as profiler:
    faulthandler.dump_traceback_later(0.02, repeat=True, file=file)
    spin(0.4)
    faulthandler.cancel_dump_traceback_later()
print(profiler.profile.quality.taken, faulthandler.is_enabled(), flush=True)
pystrobe.enable(mode=MODE)
spin(0.05)
ctypes.string_at(0)
""",
        mode,
    )
    assert finished.returncode == -signal.SIGSEGV
    taken, is_enabled = finished.stdout.split()
    assert int(taken) > 50
    assert is_enabled == "True"
    assert told.read_text().count("Timeout (") >= 3
    assert "in spin" in told.read_text()
    assert "Fatal Python error: Segmentation fault" in finished.stderr
    assert "in string_at" in finished.stderr


@pytest.mark.parametrize("options", ["mode='cpu'", "mode='cpu', native=True", "mode='wall'"])
def test_a_handler_of_c_for_faults_goes_on(neighbours: str, options: str) -> None:
    said = answer(
        f"""
import ctypes, json, pystrobe
c = ctypes.CDLL({neighbours!r})
assert c.install() == 0
installed, faults = [c.is_installed()], [c.fault(1000)]
with pystrobe.Profiler({options}, rate=2000) as profiler:
    for _ in range(20):
        faults.append(c.fault(1000))
        installed.append(c.is_installed())
        spin(0.005)
installed.append(c.is_installed())
faults.append(c.fault(1000))
print(json.dumps({{"installed": installed, "faults": faults,
    "taken": profiler.profile.quality.taken}}))
"""
    )
    assert set(said["installed"]) == {1}
    assert set(said["faults"]) == {1000}
    assert said["taken"] > 50


CHILDREN = (
    WORK
    + """
import json, multiprocessing, sys, pystrobe

def child(itself):
    if not itself:
        burn20()
        try:
            pystrobe.disable()
            return [False, 0]
        except pystrobe.Error:
            return [True, 0]
    with pystrobe.Profiler(mode=itself, rate=1000) as profiler:
        burn50()
    names = {f.name for f in profiler.profile.report().functions}
    return ["burn50" in names, profiler.profile.quality.taken]

if __name__ == "__main__":
    method, mode = sys.argv[1:]
    pystrobe.enable(mode=mode, rate=1000)
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(child, ["", mode, "", mode], chunksize=1)
    burn50()
    own = pystrobe.disable()
    print(json.dumps({"results": results, "taken": own.quality.taken,
        "names": [f.name for f in own.report().functions]}))
"""
)


@MODES
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_of_multiprocessing_work(mode: str, method: str, tmp_path: Path) -> None:
    """Those that profile themselves, too."""
    program = tmp_path / "program.py"
    program.write_text(CHILDREN)
    finished = subprocess.run(
        [sys.executable, str(program), method, mode], capture_output=True, text=True, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    said = json.loads(finished.stdout)
    assert [right for right, _ in said["results"]] == [True] * 4
    assert [taken > 10 for _, taken in said["results"]] == [False, True, False, True]
    assert said["taken"] > 20
    assert "burn50" in said["names"]


@MODES
def test_a_storm_of_signals_is_the_programs(mode: str) -> None:
    """Three timers, a signal for each answer, and a pipe: nothing is lost, and nothing fails."""
    said = answer(
        """
import json, os, select, signal, threading, pystrobe
TIMERS = {"REAL": signal.SIGALRM, "VIRTUAL": signal.SIGVTALRM, "PROF": signal.SIGPROF}
counts = {}
def on_signal(number, frame):
    counts[number] = counts.get(number, 0) + 1
for number in (*TIMERS.values(), signal.SIGUSR1):
    signal.signal(number, on_signal)
handlers = [signal.getsignal(n) for n in (*TIMERS.values(), signal.SIGUSR1)]
for name in TIMERS:
    signal.setitimer(getattr(signal, "ITIMER_" + name), 0.001, 0.001)
intervals = lambda: [signal.getitimer(getattr(signal, "ITIMER_" + n))[1] for n in TIMERS]
set_to = intervals()

def storm(rounds):
    counts.clear()
    reading, writing = os.pipe()
    def send():
        # The next one when the last was handled: so many that are pending are one.
        for i in range(rounds):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            os.write(writing, b"x")
            while counts.get(signal.SIGUSR1, 0) <= i:
                time.sleep(0.0001)
        os.close(writing)
    thread = threading.Thread(target=send)
    thread.start()
    got = 0
    while True:
        select.select([reading], [], [], 10)
        data = os.read(reading, 100)
        if not data: break
        got += len(data)
        sum(range(2000))
    os.close(reading)
    thread.join()
    spin(0.2)
    return {"usr1": counts[signal.SIGUSR1], "got": got,
            **{name: counts.get(number, 0) for name, number in TIMERS.items()}}

before = storm(300)
with pystrobe.Profiler(mode=MODE, rate=1000) as profiler:
    during = storm(300)
    kept = intervals() == set_to
after = storm(300)
same = [signal.getsignal(n) for n in (*TIMERS.values(), signal.SIGUSR1)] == handlers
for name in TIMERS:
    signal.setitimer(getattr(signal, "ITIMER_" + name), 0)
print(json.dumps({"rounds": [before, during, after], "kept": kept, "same": same,
    "taken": profiler.profile.quality.taken}))
""",
        mode,
    )
    assert said["same"]
    assert said["kept"]
    for told in said["rounds"]:
        assert told["usr1"] == told["got"] == 300
        # Timers of CPU time fire on the scheduler's ticks, 100 a second at least.
        assert all(told[name] >= 10 for name in ("REAL", "VIRTUAL", "PROF")), told
    assert said["taken"] > 50
