# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the executable, the interpreters, one oracle per target and interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interpreters")]

import find  # noqa: E402
from browser import Browser, missing, running_browser  # noqa: E402
from disturbance import RERUNS, Witness  # noqa: E402
from html_page import SIZE  # noqa: E402
from oracle import Oracle  # noqa: E402
from own_interpreters import Own, own_interpreters  # noqa: E402
from pystrobe_command import REPOSITORY, Pystrobe, find_executable  # noqa: E402

Example = Callable[..., Path]

witness = Witness()


@cache
def all_interpreters() -> list[find.Interpreter]:
    """One of each name; of the same minor version the last patch release found."""
    return list({one.name: one for one in find.find()}.values())


def one_of_each_layout() -> list[find.Interpreter]:
    """Where frames and the lock lie alike; up to 3.10 they do."""
    return list(
        {(max(one.minor, (3, 10)), one.free_threaded): one for one in all_interpreters()}.values()
    )


def oldest_and_newest() -> list[find.Interpreter]:
    return [all_interpreters()[0], all_interpreters()[-1]]


# Marks, of tests or of parameters, by which fewer interpreters do without --matrix.
FEWER: dict[str, Callable[[], list[find.Interpreter]]] = {
    "each_layout": one_of_each_layout,
    "oldest_and_newest": oldest_and_newest,
}


@cache
def newest_interpreter() -> find.Interpreter:
    """The newest that needs no chroot: what tests that do not depend on the version use."""
    return [one for one in all_interpreters() if not one.root and not one.free_threaded][-1]


@cache
def oracle_of(target: str, interpreter: find.Interpreter) -> Oracle:
    return Oracle(target, interpreter.command())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", action="store_true", help="run every combination: much longer")


def heed_signals() -> None:
    """A shell has what it runs in the background ignore these, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    heed_signals()
    config.addinivalue_line("markers", "matrix: every combination; only with --matrix")
    config.addinivalue_line("markers", "slow: takes many seconds")
    config.addinivalue_line("markers", "each_layout: without --matrix one interpreter of each")
    config.addinivalue_line(
        "markers",
        "oldest_and_newest: without --matrix these; for what the kernel and clocks decide",
    )
    config.addinivalue_line("markers", "chance: what samples say against the truth; wrong twice")
    config.addinivalue_line(
        "markers", "beside_others: nothing in it depends on how long anything takes"
    )
    config.addinivalue_line("markers", "alone: this does, in a file that is beside_others")


def is_matrix(config: pytest.Config) -> bool:
    return bool(config.getoption("--matrix") or os.environ.get("PYSTROBE_MATRIX"))


def is_left_out(item: pytest.Item) -> bool:
    """Of what only the matrix runs."""
    if item.get_closest_marker("matrix"):
        return True
    interpreter = getattr(item, "callspec", None) and item.callspec.params.get("interpreter")
    return interpreter is not None and any(
        interpreter not in choose()
        for mark, choose in FEWER.items()
        if item.get_closest_marker(mark)
    )


def runs_again(item: pytest.Item) -> Callable[[], bool]:
    """What was disturbed does; and once what is of chance: of hundreds of estimates with bounds of
    three standard deviations one is outside of them now and then, but not in two tries running."""
    of_chance = item.get_closest_marker("chance") is not None

    def decide() -> bool:
        first = getattr(item, "execution_count", 1) == 1
        return (of_chance and first) or witness.was_disturbed()

    return decide


def let_run_again(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Whoever reads the output is to see what went wrong the first time.
    config.option.rerun_show_tracebacks = True
    for item in items:
        # A browser is a child of ours that goes on: its CPU time would pass for that of others.
        if "window" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, condition=runs_again(item)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.pluginmanager.hasplugin("rerunfailures"):
        let_run_again(config, items)
    if is_matrix(config):
        return
    left_out = {item: None for item in items if is_left_out(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    del item
    witness.begin()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "interpreter" in metafunc.fixturenames:
        found = all_interpreters()
        metafunc.parametrize("interpreter", found, ids=[one.name for one in found])


@pytest.fixture(
    params=[one for one in own_interpreters() if not one.root], ids=lambda one: one.name
)
def own(request: pytest.FixtureRequest) -> Own:
    """Each interpreter that has the package: they keep frames in different ways."""
    one: Own = request.param
    return one


@pytest.fixture(scope="session")
def newest() -> find.Interpreter:
    return newest_interpreter()


@pytest.fixture
def briefly(request: pytest.FixtureRequest) -> float:
    """Seconds in which hundreds of samples are taken; without --matrix not more than that."""
    return 0.5 if is_matrix(request.config) else 0.3


@pytest.fixture
def pystrobe(tmp_path: Path) -> Pystrobe:
    executable = find_executable()
    if not executable or not executable.exists():
        pytest.fail("no pystrobe executable: build it, or name it in PYSTROBE")
    return Pystrobe(executable, tmp_path)


@pytest.fixture(scope="session")
def write_example() -> Path:
    """The program that writes the recordings of tests/cpp/write/example_recordings.h."""
    if named := os.environ.get("PYSTROBE_WRITE_EXAMPLE"):
        return Path(named)
    built = list(REPOSITORY.glob("build/*/tests/cpp/write_example"))
    if not built:
        pytest.fail("no write_example: build the C++ tests, or name it in PYSTROBE_WRITE_EXAMPLE")
    return max(built, key=lambda path: path.stat().st_mtime)


@pytest.fixture
def example(write_example: Path, tmp_path: Path) -> Example:
    """Writes an example: example("shop", ".html", "cpu") -> path."""

    def write(name: str, suffix: str, *options: str) -> Path:
        path = tmp_path / (name + suffix)
        subprocess.run([str(write_example), name, str(path), *options], check=True)
        return path

    return write


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    if lack := missing():
        pytest.skip(f"{lack} (Debian packages chromium and chromium-driver)")
    with running_browser() as browser:
        yield browser


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """A browser as a test expects it; what goes wrong in the page fails the test."""
    window.resize(*SIZE)
    window.color_scheme("light")
    window.console()
    yield window
    assert window.console() == []


@pytest.fixture
def shop(page: Browser, example: Example) -> Browser:
    page.open(example("shop", ".html"))
    return page
