# SPDX-License-Identifier: Apache-2.0
"""Where a program that samples itself wants the profile: told at once where that is wrong, and
nothing lost where it goes wrong in the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from test_outputs import ROOT_ONLY, small_disk

pytestmark = pytest.mark.beside_others

pystrobe = pytest.importorskip("pystrobe", reason="the package is not installed: make build")


def burn() -> str:
    return str(sum(i * i for i in range(10**6)))


RESULT = burn()


def kept_in(text: str) -> set[str]:
    """The functions of the profile that this says is kept; takes it away."""
    (path,) = re.findall(r"nothing recorded is lost: it is in (\S+\.strobe)", text)
    functions = {part for row in pystrobe.read(path).functions for part in row.name.split(".")}
    Path(path).unlink()
    return functions


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A file that can be opened, and not written."""
    path = tmp_path / "full.html"
    path.symlink_to("/dev/full")
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.bad", "no format is known by the name 'x.bad'"),
        ("", "no format is known by the name ''"),
        ("x.callgrind", "calls of functions, which samples do not tell"),
        ("x.trace.json", "a timeline, and none is kept"),
    ],
)
def test_a_wrong_name_is_told_where_it_is_written(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pystrobe.profile(output=name)


def refuses(output: Path, message: str) -> None:
    calls = []
    sampled = pystrobe.profile(output=output)(lambda: calls.append(1))
    with pytest.raises(ValueError, match=message):
        sampled()
    assert calls == []
    with pystrobe.Profiler():
        pass  # none runs


def test_a_wrong_place_is_told_before_the_call(tmp_path: Path) -> None:
    refuses(tmp_path / "none" / "x.html", f"there is no folder {tmp_path}/none")
    (tmp_path / "x.html").mkdir()
    refuses(tmp_path / "x.html", "x.html is a folder")


@ROOT_ONLY
def test_a_place_for_reading_alone_is_told_before_the_call(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "16k") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        refuses(disk / "x.html", f"{disk} cannot be written")


def test_the_place_is_that_of_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @pystrobe.profile(output="x.html")
    def goes_elsewhere() -> str:
        os.chdir("/proc")
        return burn()

    assert goes_elsewhere() == RESULT
    assert (tmp_path / "x.html").read_text().startswith("<!")


def test_a_full_disk_takes_no_result(full: Path) -> None:
    with pytest.warns(RuntimeWarning, match="No space left") as warned:
        assert pystrobe.profile(output=full)(burn)() == RESULT
    assert "burn" in kept_in(str(warned[0].message))
    assert warned[0].filename == __file__

    @pystrobe.profile(output=full)
    def fails() -> None:
        burn()
        raise ZeroDivisionError

    with (
        pytest.warns(RuntimeWarning, match="No space left") as warned,
        pytest.raises(ZeroDivisionError),
    ):
        fails()
    assert {"fails", "burn"} <= kept_in(str(warned[0].message))


@ROOT_ONLY
def test_a_small_disk_takes_no_result(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "4k") as disk:
        with pytest.warns(RuntimeWarning, match="No space left") as warned:
            assert pystrobe.profile(output=disk / "x.html")(burn)() == RESULT
        assert list(disk.iterdir()) == []
    assert "burn" in kept_in(str(warned[0].message))


def test_a_stream_that_takes_nothing_takes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.warns(RuntimeWarning) as warned:
        assert pystrobe.profile(burn)() == RESULT
    assert "burn" in kept_in(str(warned[0].message))


def test_what_the_block_raised_is_what_is_raised(tmp_path: Path) -> None:
    """Though the profile cannot be saved either."""
    folder = tmp_path / "folder"
    folder.mkdir()

    def program() -> None:
        with pystrobe.Profiler(output=folder / "x.html"):
            burn()
            folder.rmdir()
            raise KeyError("of the program")

    with (
        pytest.warns(RuntimeWarning, match="there is no folder") as warned,
        pytest.raises(KeyError, match="of the program"),
    ):
        program()
    assert "burn" in kept_in(str(warned[0].message))


def test_saving_where_there_is_no_folder_names_it(tmp_path: Path) -> None:
    with pystrobe.Profiler() as profiler:
        burn()
    with pytest.raises(pystrobe.InvalidArgumentError, match=f"there is no folder {tmp_path}/gone"):
        profiler.profile.save(tmp_path / "gone" / "x.html")
    with pytest.raises(pystrobe.InvalidArgumentError, match="it ends as one of strobe, html"):
        profiler.profile.save("x.svg")
    with pytest.raises(pystrobe.InvalidArgumentError, match="no such format: 'svg'"):
        profiler.profile.save(tmp_path / "x.html", format="svg")


def test_only_functions_are_decorated() -> None:
    class Machine:
        pass

    with pytest.raises(pystrobe.InvalidArgumentError, match="a file goes by its name"):
        pystrobe.profile("work.html")
    with pytest.raises(pystrobe.InvalidArgumentError, match="Machine is a class"):
        pystrobe.profile(Machine)


def test_an_exception_leaves_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "x.strobe"

    @pystrobe.profile(output=path)
    def fails() -> None:
        burn()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    report = pystrobe.read(path)
    assert report.quality.complete
    assert "fails" in {function.name.split(".")[-1] for function in report.functions}


def test_a_function_that_stops_it_keeps_its_result(tmp_path: Path) -> None:
    path = tmp_path / "x.strobe"

    @pystrobe.profile(output=path)
    def stops() -> str:
        done = burn()
        pystrobe.disable()
        return done

    assert stops() == RESULT
    assert pystrobe.read(path).quality.complete


def test_calls_that_begin_at_once_all_return(tmp_path: Path) -> None:
    """One of them is sampled; no other is refused."""
    path = tmp_path / "x.strobe"
    together = threading.Barrier(8)
    results = []
    sampled = pystrobe.profile(output=path)(burn)

    def call() -> None:
        together.wait()
        results.append(sampled())

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [RESULT] * 8
    assert path.exists()


def run_auto(output: object, more: str = "", *, code: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import pystrobe.auto\n{code}sum(map(abs, range(10**6)))\n{more}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYSTROBE_ENABLE": f"output={output}"},
    )


def test_auto_tells_a_wrong_output_at_once(tmp_path: Path) -> None:
    look = "import sys, os; sys.stderr.write('it begins\\n')\n"
    for output in ("x.bad", "x.pstats", tmp_path / "none" / "x.html"):
        done = run_auto(output, "raise SystemExit(3)", code=look)
        assert done.returncode == 3
        assert done.stderr.startswith("pystrobe: ")
        assert done.stderr.endswith("it begins\n")
    traced = run_auto(f"{tmp_path}/x.pstats,mode=trace", "raise SystemExit(3)")
    assert (traced.returncode, traced.stderr) == (3, "")


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n" + "pass\n" * 9, -signal.SIGINT),
    ],
)
def test_auto_loses_nothing_on_a_full_disk(full: Path, end: str, status: int) -> None:
    done = run_auto(full, end)
    assert done.returncode == status
    assert "No space left" in done.stderr
    assert "<module>" in kept_in(done.stderr)


def test_auto_loses_nothing_where_the_folder_goes(tmp_path: Path) -> None:
    folder = tmp_path / "goes"
    folder.mkdir()
    done = run_auto(folder / "x.html", f"import os\nos.rmdir({str(folder)!r})\nraise SystemExit(3)")
    assert done.returncode == 3
    assert "there is no folder" in done.stderr
    assert "<module>" in kept_in(done.stderr)
