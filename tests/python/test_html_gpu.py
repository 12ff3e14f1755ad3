# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a recording with a GPU's work, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser
from conftest import Example
from html_page import Node, calls_by_name, choose_threads, rows, settle
from pystrobe_command import Pystrobe

pytestmark = pytest.mark.beside_others

MODES = (
    "return [...document.querySelectorAll('#modes label')].filter((l) => l.offsetWidth)"
    ".map((l) => l.innerText)"
)
THREADS = "return [...document.querySelector('#threads').options].map((o) => o.text)"
HEADS = "return [...document.querySelectorAll('th')].map((e) => e.innerText.slice(0, 5))"
KERNEL = "gemm<float, 128>"


@pytest.fixture
def gpu(page: Browser, example: Example) -> Browser:
    page.open(example("gpu", ".html", "gpu"))
    return page


def test_the_page_opens_in_the_mode_asked_for(gpu: Browser) -> None:
    assert gpu.script(MODES) == ["Wall", "CPU", "GIL", "GPU"]
    assert gpu.text("#path") == "all\n624 ms GPU time in 2 streams"
    own, total, _ = rows(gpu)[KERNEL]
    assert (own, total) == ("98.0 %", "98.0 %")
    assert rows(gpu)["train"][1] == "100 %"
    assert " GPU: fair (times missing); " in gpu.text("#quality")


def test_works_are_counted(gpu: Browser) -> None:
    assert gpu.script(HEADS)[:3] == ["Count", "Self", "Total"]
    assert calls_by_name(gpu)[KERNEL] == "1,100"
    assert gpu.text("#detail").endswith(" · 2,114 times on a GPU")
    box = Node(gpu, 4, 0.0, 0.97)
    gpu.move_to(box.x, box.y)
    assert gpu.text("#tip h2") == KERNEL
    assert gpu.text("#tip p") == "<gpu> · 1,100 times on a GPU"


def test_streams_are_the_threads(gpu: Browser) -> None:
    streams = ["GPU 0 stream 7 · 613 ms GPU", "GPU 0 stream 13 · 10.5 ms GPU"]
    assert gpu.script(THREADS) == ["all, merged", "all, side by side", *streams]
    choose_threads(gpu, "GPU 0 stream 13")
    assert gpu.text("#path") == "all\n10.5 ms GPU time in 1 stream"
    assert "relu" not in rows(gpu)


def test_other_modes_have_none_of_it(gpu: Browser) -> None:
    choose_threads(gpu, "GPU 0 stream 13")
    gpu.keys("w")
    assert gpu.text("#path") == "all\n1.00 s wall time in 1 thread"
    assert gpu.script(THREADS) == ["all, merged", "MainThread · 4242 · 1.00 s CPU"]
    assert gpu.script(HEADS)[:2] == ["Self", "Total"]
    assert list(rows(gpu)) == ["step", "<module> app.py", "train"]
    gpu.keys("u")
    assert gpu.text("#path") == "all\n624 ms GPU time in 2 streams"
    settle(gpu, "100 % = 624 ms")


def test_without_it_no_mode_is_offered(shop: Browser) -> None:
    assert shop.script(MODES) == ["Wall", "CPU", "GIL"]
    shop.keys("u")
    assert "wall time" in shop.text("#path")


def test_it_may_be_all_there_is(page: Browser, example: Example) -> None:
    page.open(example("gpu alone", ".html", "gpu"))
    assert page.script("return document.querySelector('#modes').hidden")
    assert "624 ms GPU time in 2 streams" in page.text("#path")
    page.keys("w")
    assert "GPU time" in page.text("#path")
    assert page.text("#quality").startswith("fair (times missing); 2,114 works recorded")
    assert "2.00 s" in page.text("#facts")


TABS = (
    "return [...document.querySelectorAll('#tabs button')].filter((b) => b.offsetWidth)"
    ".map((b) => b.innerText)"
)
LISTED = (
    "return [...document.querySelectorAll('#list tbody tr')]"
    ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
)


def choose_tab(page: Browser, label: str) -> None:
    page.script(
        "[...document.querySelectorAll('#tabs button')]"
        ".find((b) => b.innerText === arguments[0]).click()",
        label,
    )


def test_what_a_gpu_did_is_listed_beside_functions(gpu: Browser) -> None:
    assert gpu.script(TABS) == ["Functions", "Modules", "Kernels", "Idle", "Waits", "Meanwhile"]
    choose_tab(gpu, "Kernels")
    listed = gpu.script(LISTED)
    # Of two shapes, of which more or fewer blocks fit.
    assert listed[0] == ["1,000", "96.4 %", "601 µs", KERNEL, "step · app.py:5"]
    assert [row[3] for row in listed] == [KERNEL, "copy to the device", KERNEL, "relu", "set"]
    assert "613 ms in 2,100 kernels" in gpu.text("#scope")
    hint = gpu.script("return document.querySelector('#list td.name').title")
    assert "256 threads a block, theoretical occupancy 50 %" in hint
    assert not gpu.script("return document.querySelector('#weights').offsetWidth")
    choose_tab(gpu, "Functions")
    assert rows(gpu)[KERNEL][0] == "98.0 %"
    assert not gpu.script("return document.querySelector('#list').offsetWidth")


def test_idle_time_waits_and_what_was_done_meanwhile_are_listed(gpu: Browser) -> None:
    choose_tab(gpu, "Idle")
    first, *_ = gpu.script(LISTED)
    why = "the program launched nothing for it"
    assert first == ["10", "58.3 %", "70.0 ms", why, "train · app.py:14-11"]
    assert gpu.text("#scope").startswith("Nothing to do for 1.20 s of 1.90 s")
    choose_tab(gpu, "Waits")
    assert gpu.script(LISTED) == [["110", "100 %", "5.55 ms", "9.00 ms", "item · app.py:3"]]
    choose_tab(gpu, "Meanwhile")
    assert gpu.script(LISTED) == [["100 %", "210 ms", "step · app.py:5"]]


def test_lists_are_sorted_and_searched(gpu: Browser) -> None:
    choose_tab(gpu, "Kernels")
    gpu.click("#list th:nth-child(3) button")
    assert [row[3] for row in gpu.script(LISTED)][:2] == ["copy to the device", KERNEL]
    gpu.click("#list th:nth-child(3) button")
    assert [row[3] for row in gpu.script(LISTED)][-1] == "copy to the device"
    gpu.keys("/", "r", "e", "l", "u")
    assert [row[3] for row in gpu.script(LISTED)] == ["relu"]
    assert gpu.text("#found") == "1 of 5 rows"
    choose_tab(gpu, "Functions")
    assert gpu.text("#found") == "0.3 % in 1 place"


def test_lists_of_a_gpu_are_of_its_mode(gpu: Browser) -> None:
    choose_tab(gpu, "Kernels")
    gpu.keys("w")
    assert gpu.script(TABS) == ["Functions", "Modules"]
    assert list(rows(gpu)) == ["step", "<module> app.py", "train"]
    gpu.keys("u")
    assert gpu.script(TABS)[:3] == ["Functions", "Modules", "Kernels"]
    assert not gpu.script("return document.querySelector('#list').offsetWidth")


def test_ranges_are_a_tree_in_any_mode(page: Browser, example: Example) -> None:
    page.open(example("ranges-alone", ".html", "wall"))
    assert page.script(TABS) == ["Functions", "Modules", "Ranges"]
    choose_tab(page, "Ranges")
    assert [row[-1] for row in page.script(LISTED)] == [
        *("step", "forward", "backward", "NCCL: all_reduce", "load ahead"),
    ]
    depths = page.script(
        "return [...document.querySelectorAll('#list td.name')]"
        ".map((cell) => cell.style.getPropertyValue('--depth'))"
    )
    assert depths == ["0", "1", "1", "2", "0"]


def test_a_part_of_a_recording_lists_none_of_the_whole(
    page: Browser, pystrobe: Pystrobe, example: Example, tmp_path: Path
) -> None:
    part = tmp_path / "part.html"
    source = str(example("gpu", ".strobe"))
    pystrobe.succeed("report", source, "--since", "0.5", "-o", str(part))
    page.open(part)
    assert page.script(TABS) == ["Functions", "Modules"]
