# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a trace, in a real browser: its samples are calls."""

from __future__ import annotations

import pytest
from browser import Browser
from conftest import Example
from html_page import Node, calls_by_name, choose_threads, rows, settle

pytestmark = pytest.mark.beside_others


@pytest.fixture
def calls(page: Browser, example: Example) -> Browser:
    page.open(example("calls", ".html"))
    return page


def test_a_trace_has_no_time_of_the_lock(calls: Browser) -> None:
    labels = "return [...document.querySelectorAll('#modes label')].filter((l) => l.offsetWidth)"
    assert calls.script(f"{labels}.map((l) => l.innerText)") == ["Wall", "CPU"]
    calls.keys("g")
    assert "100 ms wall time in 2 threads" in calls.text("#path")
    calls.keys("c")
    assert "50.0 ms CPU time in 2 threads" in calls.text("#path")
    assert calls.script("return document.querySelector('#empty').hidden")


def test_calls_of_a_trace_are_those_of_each_box_itself(calls: Browser) -> None:
    assert calls.text("#detail").startswith("100 ms wall time in 2 threads · total 100 ms (100 %)")
    assert calls.text("#detail").endswith(" · 10,006 calls")
    for row, begin, end, said in [
        (1, 0.0, 0.7, "called once"),  # not what it called
        (2, 0.0, 0.6, "called 10,000 times"),
        (1, 0.7, 1.0, "no call began here"),
        (2, 0.7, 0.9, "called 3 times"),
    ]:
        box = Node(calls, row, begin, end)
        calls.move_to(box.x, box.y)
        assert calls.text("#tip p").endswith(f" · {said}")
    assert "samples" not in calls.text("#tip")
    choose_threads(calls, "worker")
    assert calls.text("#detail").endswith(" · 3 calls")


def test_the_table_of_a_trace_counts_calls(calls: Browser) -> None:
    heads = "return [...document.querySelectorAll('th')].map((e) => e.innerText.slice(0, 5))"
    assert calls.script(heads)[:3] == ["Calls", "Self", "Total"]
    # What took no time was called all the same.
    expected = {"step": "10,003", "main": "1", "run": "0", "check": "2"}
    assert calls_by_name(calls) == expected
    calls.keys("c")
    assert calls_by_name(calls) == expected
    calls.click("th:nth-child(1) button")
    assert list(calls_by_name(calls).values()) == ["10,003", "2", "1", "0"]
    box = Node(calls, 1, 0.7, 1.0)
    calls.click_at(box.x, box.y)
    settle(calls, "in run")
    assert calls_by_name(calls) == {"step": "3", "run": "0"}
    calls.click("#by-module")
    assert calls_by_name(calls) == {"app/step.py": "3", "app/w.py": "0"}


def test_samples_are_not_told_as_calls(shop: Browser) -> None:
    assert "Calls" not in shop.text("thead")
    assert shop.text("#detail").endswith(" · 1,500 thread samples")


def test_a_trace_has_no_hottest_line(calls: Browser) -> None:
    box = Node(calls, 2, 0.0, 0.6)
    calls.move_to(box.x, box.y)
    tip = " ".join(calls.text("#tip").split())
    assert tip.startswith("step defined at /app/step.py:7 · called")
    assert "line" not in tip.lower()
    assert "Defined at" in calls.text("thead")
    assert "Hottest line" not in calls.text("thead")
    assert rows(calls)["step"][2] == "app/step.py:7"


def test_the_help_explains_calls_or_samples(page: Browser, example: Example) -> None:
    of_samples = ("sample", "Proved", "Late", "Held", "GIL", "line with most of its time")
    of_calls = ("Calls are those that began", "one call, however often", "took is in the times")
    for name, said, unsaid in [("shop", of_samples, of_calls), ("calls", of_calls, of_samples)]:
        page.open(example(name, ".html"))
        page.keys("?")
        text = page.text("#keys")
        assert [part for part in said if part not in text] == []
        assert [part for part in unsaid if part in text] == []
