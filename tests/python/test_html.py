# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a real browser.

The recordings are those of tests/cpp/write/example_recordings.h. Most tests look at "shop", whose
call tree in wall time is (idle thread left out)

    all 1500 ms
      <module> 1000, main 1000 (100 self): Json.encode 600, read 300 (waiting)
      Thread.run 500: crunch 500 (125 of them on the CPU)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from conftest import Example
from find import Interpreter
from html_page import (
    Node,
    canvas_box,
    choose_threads,
    encode,
    fill,
    next_frame,
    pixels,
    rows,
    set_query,
    settle,
)
from pystrobe_command import Pystrobe
from running import running

pytestmark = pytest.mark.beside_others

EXAMPLES = ["shop", "odd", "empty", "idle", "deep", "large", "wide", "gaps", "split", "calls"]

# --- what is in the file ---


def embedded(path: Path) -> Any:
    page = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="profile">(.*?)</script', page, re.S)
    assert found
    return json.loads(found.group(1))


def stacks_of(profile: Any, thread: Any) -> Iterator[tuple[tuple[tuple[str, str, int], ...], int]]:
    """(stack, row) for each row of a thread, as the comment of html.cpp says."""
    strings, functions, frames = profile["strings"], profile["functions"], profile["frames"]
    stacks: list[tuple[tuple[str, str, int], ...]] = [()]
    for up, frame in zip(profile["stacks"]["up"], profile["stacks"]["frame"], strict=True):
        function = frames["function"][frame]
        name, file = (strings[functions[key][function]] for key in ("name", "file"))
        line = frames["line"][frame]
        stacks.append((*stacks[len(stacks) - up], (name or "<unknown>", file, line)))
    at = 0
    for row, step in enumerate(thread["stack"]):
        at += step
        yield stacks[at], row


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_file_holds_what_the_json_report_holds(example: Example, name: str) -> None:
    html, report = embedded(example(name, ".html")), json.loads(example(name, ".json").read_text())
    columns = {
        "samples": "samples",
        "cpuSamples": "cpu_samples",
        "gilSamples": "gil_samples",
        "wall": "wall_ns",
        "cpu": "cpu_ns",
        "gil": "gil_ns",
    }
    assert len(html["threads"]) == len(report["threads"])
    for thread, expected in zip(html["threads"], report["threads"], strict=True):
        assert (thread["tid"], thread["name"]) == (expected["tid"], expected["name"])
        for column, key in columns.items():
            values = thread.get(column, [0] * len(thread["stack"]))
            unit = 1000 if key.endswith("_ns") else 1
            assert sum(values) * unit == pytest.approx(expected["total"][key], abs=unit / 2)
        wall = thread.get("wall", [0] * len(thread["stack"]))
        written = {stack: wall[row] for stack, row in stacks_of(html, thread)}
        assert written == wall_by_stack(report, expected)


def wall_by_stack(report: Any, thread: Any) -> dict[tuple[tuple[str, str, int], ...], int]:
    functions = report["functions"]
    found = {}
    for stack in thread["stacks"]:
        frames = tuple(
            (functions[function]["name"], functions[function]["file"], line)
            for function, line in stack["frames"]
        )
        found[frames] = stack["wall_ns"] // 1000
    return found


# --- the page ---


@pytest.mark.parametrize("name", EXAMPLES)
def test_opens_without_complaint_and_asks_for_nothing_else(
    page: Browser, example: Example, name: str
) -> None:
    path = example(name, ".html")
    page.requests()
    page.open(path)
    assert [url for url in page.requests() if not url.startswith("data:")] == [path.as_uri()]
    if name in ("empty", "idle"):
        assert page.text("#empty") == "The recording has no samples."
    else:
        assert fill(page, Node(page, 1, 0, 0.01)) != fill(page, Node(page, 1, 0.99, 1.5)), "blank"


def test_tells_what_was_profiled_and_how_well(shop: Browser) -> None:
    assert shop.text("#command") == "python3 shop.py --port 8000"
    assert shop.script("return document.title") == "python3 shop.py --port 8000"
    for fact in ("pid 4242", "Python 3.13.0", "example", "1.00 s", "pystrobe 0.1.0"):
        assert fact in shop.text("#facts")
    # Each entry of the example counts as one sample: 700 and two waits, and 500.
    for fact in ("1,202 samples, ", "all proved exact", "0 lost", "target held 6.01 ms"):
        assert fact in shop.text("#quality")


def test_draws_each_call_where_its_time_is(shop: Browser) -> None:
    background = fill(shop, Node(shop, 3, 0.61, 0.66))
    for node in (encode(shop), Node(shop, 3, 0.4, 0.6), Node(shop, 2, 2 / 3, 1)):
        assert fill(shop, node) != background
    for nothing in (Node(shop, 3, 0.605, 0.66), Node(shop, 3, 2 / 3, 1)):
        assert set(pixels(shop, nothing)) == {background}
    assert fill(shop, encode(shop)) != fill(shop, Node(shop, 3, 0.4, 0.6)), "two files, one colour"


def test_modes_have_their_own_totals(shop: Browser) -> None:
    assert "1.50 s wall time in 2 threads" in shop.text("#path")
    shop.click("#modes label:nth-of-type(2)")
    assert "825 ms CPU time in 2 threads" in shop.text("#path")
    assert rows(shop)["crunch"][0] == "15.2 %"
    assert "read" not in rows(shop)
    shop.click("#modes label:nth-of-type(3)")
    assert "700 ms holding the GIL in 2 threads" in shop.text("#path")
    assert "crunch" not in rows(shop)
    shop.keys("w")
    assert "1.50 s wall time" in shop.text("#path")


def test_opens_in_the_mode_of_the_report(page: Browser, example: Example) -> None:
    page.open(example("shop", ".html", "cpu"))
    assert "825 ms CPU time" in page.text("#path")


def test_opens_with_idle_threads_where_they_were_asked_for(
    page: Browser, pystrobe: Pystrobe, newest: Interpreter
) -> None:
    with running(newest, "idle", "2") as target:
        recorded = pystrobe.attach(target.pid, seconds=0.5, rate=200)
    for options, threads in [((), 1), (("--idle",), 5)]:
        path = pystrobe.directory / f"{threads}.html"
        pystrobe.succeed("report", str(recorded.path), "-o", str(path), *options)
        page.open(path)
        assert page.text("#idle-field") == "4 idle threads"
        assert f"in {threads} thread" in page.text("#path")
    page.click("#idle")
    assert "in 1 thread" in page.text("#path")


def test_threads_can_be_chosen_and_idle_ones_shown(shop: Browser) -> None:
    assert shop.text("#idle-field") == "1 idle thread"
    shop.click("#idle")
    assert "2.50 s wall time in 3 threads" in shop.text("#path")
    choose_threads(shop, "worker")
    assert "500 ms wall time in 1 thread" in shop.text("#path")
    assert list(rows(shop)) == ["crunch", "Thread.run"]
    choose_threads(shop, "all, side by side")
    assert "2.50 s wall time in 3 threads" in shop.text("#path")
    shop.click_at(Node(shop, 1, 0.4, 0.8).x, Node(shop, 1, 0, 1).y)
    settle(shop, "in thread (4250)")
    assert "1.00 s wall time, 40.0 % of all" in shop.text("#path")


def test_why_nothing_is_shown_is_said(shop: Browser) -> None:
    choose_threads(shop, "thread · 4250")
    shop.keys("c")
    assert "used no CPU time" in shop.text("#empty")
    shop.keys("g")
    assert "never seen holding" in shop.text("#empty")


def test_click_zooms_and_there_are_three_ways_back(shop: Browser) -> None:
    node = encode(shop)
    for back in ("#reset", "#path button", "Escape"):
        shop.click_at(node.x, node.y)
        settle(shop, "in Json.encode")
        assert shop.text("#path").split("\n")[0].startswith("all")
        assert "Json.encode" in shop.text("#path strong")
        assert "600 ms wall time, 40.0 % of all" in shop.text("#path")
        assert rows(shop) == {"Json.encode": ("100 %", "100 %", "app/json.py:12")}
        # The zoomed call now fills the width.
        assert fill(shop, Node(shop, 3, 0.9, 1)) == fill(shop, Node(shop, 3, 0.1, 0.2))
        if back == "Escape":
            shop.keys(back)
        else:
            shop.click(back)
        settle(shop, "100 % = 1.50 s")
        assert shop.script("return document.querySelector('#reset').disabled")


def test_zoom_stays_when_the_mode_changes(shop: Browser) -> None:
    node = encode(shop)
    shop.click_at(node.x, node.y)
    settle(shop, "in Json.encode")
    shop.keys("c")
    assert "600 ms CPU time, 72.7 % of all" in shop.text("#path")


def test_search_highlights_and_gives_a_percentage(shop: Browser) -> None:
    plain = fill(shop, encode(shop))
    # Nested matches count once: main and the <module> it is in are both of shop.py.
    assert set_query(shop, "SHOP.py") == "66.7 % in 2 places"
    assert set_query(shop, "json") == "40.0 % in 1 place"
    next_frame(shop)
    marked, dimmed = fill(shop, encode(shop)), fill(shop, Node(shop, 2, 0.7, 1))
    assert len({plain, marked, dimmed}) == 3
    assert list(rows(shop)) == ["Json.encode"]
    assert set_query(shop, "/^(read|crunch) /") == "53.3 % in 2 places"
    assert set_query(shop, "/(/") == "not a regular expression"
    assert set_query(shop, "/none/") == "nothing found"
    node = encode(shop)
    set_query(shop, "encode")
    shop.click_at(node.x, node.y)
    settle(shop, "in Json.encode")
    assert shop.text("#found") == "100 % of view, 40.0 % of all in 1 place"


def test_search_by_keyboard(shop: Browser) -> None:
    shop.keys("/", "crunch")
    assert shop.text("#found") == "33.3 % in 1 place"
    shop.keys("Escape")
    assert shop.script("return document.querySelector('#query').value") == ""
    assert len(rows(shop)) == 6


def test_escape_closes_the_help_first(shop: Browser) -> None:
    shop.keys("?")
    assert not shop.script("return document.querySelector('#keys').hidden")
    set_query(shop, "crunch")
    shop.keys("Escape")
    assert shop.script("return document.querySelector('#keys').hidden")
    assert shop.text("#found") == "33.3 % in 1 place"


def test_enter_goes_from_match_to_match(shop: Browser) -> None:
    shop.keys("/", "/^(read|crunch) /", "Enter")
    settle(shop, "in crunch")
    shop.keys("Enter")
    settle(shop, "in read")
    shop.keys("Enter")
    settle(shop, "in crunch")


def test_free_zoom_can_be_reset(shop: Browser) -> None:
    left, top, width, _ = canvas_box(shop)
    shop.script(
        "document.querySelector('canvas').dispatchEvent(new WheelEvent('wheel', {bubbles: true,"
        "cancelable: true, ctrlKey: true, deltaY: -500, clientX: arguments[0],"
        "clientY: arguments[1]}))",
        left + 0.5 * width,
        top + 10,
    )
    next_frame(shop)
    shop.move_to(left + 2, encode(shop).y)
    assert shop.text("#tip").startswith("read"), "the left edge has come nearer to the middle"
    shop.click("#reset")
    settle(shop, "100 %")
    shop.until("return document.querySelector('#reset').disabled")
    shop.move_to(left + 2, encode(shop).y)
    assert shop.text("#tip").startswith("Json.encode")


def test_table_is_sorted_as_asked_and_linked_to_the_graph(shop: Browser) -> None:
    assert list(rows(shop).items())[:3] == [
        ("Json.encode", ("40.0 %", "40.0 %", "app/json.py:12")),
        ("crunch", ("33.3 %", "33.3 %", "app/w.py:3")),
        ("read", ("20.0 %", "20.0 %", "app/socket.py:7")),
    ]
    shop.click("th:nth-child(2) button")
    assert [total for _, total, _ in rows(shop).values()][:2] == ["66.7 %", "66.7 %"]
    shop.click("th:nth-child(3) button")
    names = ["<module> shop.py", "crunch", "Json.encode", "main", "read", "Thread.run"]
    assert list(rows(shop)) == names
    plain = fill(shop, encode(shop))
    shop.click("tbody tr:nth-child(3)")
    assert shop.script("return document.querySelectorAll('tr[aria-selected=true]').length") == 1
    assert shop.text("#found").endswith("in 1 place")
    next_frame(shop)
    assert fill(shop, encode(shop)) != plain
    shop.keys("Escape")
    assert shop.text("#found") == ""


def test_table_holds_what_the_json_report_holds(page: Browser, example: Example) -> None:
    page.open(example("large", ".html"))
    page.click("#more")
    report = json.loads(example("large", ".json").read_text())
    whole = report["total"]["wall_ns"]
    expected = {
        function["name"]: tuple(
            100 * function[weight]["wall_ns"] / whole for weight in ("self", "total")
        )
        for function in report["functions"]
    }
    found = {
        name: tuple(0.05 if "<" in text else float(text.split()[0]) for text in (own, total))
        for name, (own, total, _) in rows(page).items()
    }
    assert found.keys() == expected.keys()
    for name, shares in found.items():
        assert shares == pytest.approx(expected[name], abs=0.0501), name


def test_table_by_module(shop: Browser) -> None:
    shop.click("#by-module")
    found = rows(shop)
    assert found["app/shop.py"] == ("6.7 %", "66.7 %", "2 functions")
    assert found["app/json.py"] == ("40.0 %", "40.0 %", "1 function")


def test_tooltip_tells_place_times_and_lines(shop: Browser) -> None:
    node = encode(shop)
    shop.move_to(node.x, node.y)
    tip = " ".join(shop.text("#tip").split())
    for part in (
        "Json.encode defined at /app/json.py:10 · hottest line 12 · 600 thread samples",
        "Self 600 ms 40.0 % Total 600 ms 40.0 %",
        "line 12 400 ms self 66.7 % line 14 200 ms self 33.3 %",
    ):
        assert part in tip
    shop.click_at(Node(shop, 1, 0, 0.6).x, Node(shop, 1, 0, 1).y)
    settle(shop, "in <module>")
    shop.move_to(Node(shop, 3, 0, 0.5).x, node.y)
    assert "600 ms 40.0 % 60.0 %" in " ".join(shop.text("#tip").split())
    shop.move_to(2, 2)
    assert shop.script("return document.querySelector('#tip').hidden")


def test_tooltip_tells_what_used_the_cpu(page: Browser, example: Example) -> None:
    page.open(example("split", ".html"))
    box = Node(page, 2, 0.0, 0.5)
    page.move_to(box.x, box.y)
    tip = " ".join(page.text("#tip").split())
    assert tip.startswith("load defined at /app/load.py:5")
    assert "CPU used by of this call Python 10.0 ms 11.1 % native code 50.0 ms 55.6 %" in tip
    assert "kernel 30.0 ms 33.3 %" in tip


def test_boxes_name_the_line_that_takes_the_time(shop: Browser) -> None:
    """As profilers do: the line executed, or called from; not the one of `def`."""
    shop.script(
        "window.drawn = [];"
        "const draw = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {"
        "  drawn.push(text);"
        "  draw.call(this, text, ...at);"
        "}"
    )
    shop.click("#flip")
    next_frame(shop)
    drawn = shop.script("return window.drawn")
    places = {name: place for name, place in zip(drawn, drawn[1:]) if ":" in place}
    assert places["Json.encode"] == "app/json.py:12"
    assert places["main"] == "app/shop.py:33"


def test_the_graph_is_walked_by_keyboard(shop: Browser) -> None:
    shop.script("document.querySelector('#graph').focus()")
    shop.keys("Down", "Down", "Down", "Down", "Right")
    assert shop.text("#detail").startswith(
        "read · defined at /app/socket.py:5 · hottest line 7 · self 300 ms (20.0 %)"
    )
    shop.keys("Left", "Up")
    assert shop.text("#detail").startswith("main · ")
    shop.keys("Enter")
    settle(shop, "in main")
    shop.keys("Backspace")
    settle(shop, "in <module>")


def test_flames_grow_upwards_on_request(shop: Browser) -> None:
    top = fill(shop, Node(shop, 0, 0, 1))
    shop.click("#flip")
    left, y, width, height = canvas_box(shop)
    assert height < 200
    shop.click_at(left + 0.2 * width, y + 10)
    settle(shop, "in Json.encode")
    assert fill(shop, Node(shop, 0, 0, 1)) != top


def test_deep_stacks_scroll(page: Browser, example: Example) -> None:
    page.open(example("deep", ".html"))
    page.script("const g = document.querySelector('#graph'); g.scrollTop = g.scrollHeight")
    left, top, width, height = canvas_box(page)
    next_frame(page)
    page.move_to(left + width / 2, top + height - 10)
    assert page.text("#tip").startswith("level_999")


def test_names_are_text_whatever_they_hold(page: Browser, example: Example) -> None:
    page.open(example("odd", ".html"))
    found = rows(page)
    assert "</script><!--" in found
    assert "<unknown>" in found
    assert "1 thread" not in page.text("#path")
    assert found["outside Python"][0] == "2.9 %"


def test_time_in_no_function_has_a_box_and_a_row(page: Browser, example: Example) -> None:
    page.open(example("gaps", ".html"))
    assert rows(page) == {
        "serve": ("60.0 %", "60.0 %", "app/serve.py:5"),
        "outside Python": ("20.0 %", "20.0 %", ""),
        "without a stack": ("20.0 %", "20.0 %", ""),
    }
    box = Node(page, 1, 0.8, 1)
    assert fill(page, box) == fill(page, Node(page, 0, 0, 1)), "neutral, as all that is no code"
    page.move_to(box.x, box.y)
    assert "Before the first look at a thread, or while the sampler had no CPU" in page.text("#tip")
    assert "20.0 ms wall time, 20.0 %" not in page.text("#path")
    page.click_at(box.x, box.y)
    settle(page, "in without a stack")
    assert "20.0 ms wall time, 20.0 % of all" in page.text("#path")
    page.keys("Escape", "c")
    assert "200 ms CPU time in 1 thread" in page.text("#path")
    assert rows(page)["threads never seen"][0] == "60.0 %"
    assert "without a stack" not in rows(page)
    page.click("#by-module")
    assert rows(page)["threads never seen"] == ("60.0 %", "60.0 %", "")
    assert set_query(page, "seen") == "nothing found"
