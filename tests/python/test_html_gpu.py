# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a recording with a GPU's work, in a real browser."""

from __future__ import annotations

import pytest
from browser import Browser
from conftest import Example
from html_page import Node, calls_by_name, choose_threads, rows, settle

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
