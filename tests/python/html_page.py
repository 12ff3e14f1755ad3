# SPDX-License-Identifier: Apache-2.0
"""What the tests of the HTML report do with its page: find, read and press what is drawn."""

from __future__ import annotations

from collections import Counter

from browser import Browser

SIZE = (1280, 800)


class Node:
    """A node of the drawn graph, by its share of the width and its row."""

    def __init__(self, page: Browser, row: int, begin: float, end: float) -> None:
        left, top, width, _ = canvas_box(page)
        height = page.script(
            "const style = getComputedStyle(document.documentElement);"
            "return parseFloat(style.getPropertyValue('--row'))"
        )
        self.left, self.right = left + begin * width, left + end * width
        self.x = (self.left + self.right) / 2
        self.y = top + 1 + (row + 0.5) * height


def canvas_box(page: Browser) -> list[float]:
    box = page.script(
        "const b = document.querySelector('canvas').getBoundingClientRect();"
        "return [b.x, b.y, b.width, b.height]"
    )
    assert isinstance(box, list)
    return box


def encode(page: Browser) -> Node:
    return Node(page, 3, 0, 0.4)


def pixels(page: Browser, node: Node) -> Counter[tuple[int, int, int]]:
    """The colours in the middle of a node, by how often."""
    data = page.script(
        "const [x, y, width] = arguments, height = 14;"
        "const c = document.querySelector('canvas'), b = c.getBoundingClientRect();"
        "const copy = new OffscreenCanvas(width, height);"
        "const to = copy.getContext('2d', {willReadFrequently: true}), s = c.width / b.width;"
        "to.imageSmoothingEnabled = false;"
        "to.drawImage(c, s * (x - b.x), s * (y - b.y - height / 2), s * width, s * height,"
        "             0, 0, width, height);"
        "return Array.from(to.getImageData(0, 0, width, height).data)",
        node.left + 2,
        node.y,
        max(1, int(node.right - node.left) - 4),
    )
    return Counter((r, g, b) for r, g, b in zip(data[0::4], data[1::4], data[2::4], strict=True))


def fill(page: Browser, node: Node) -> tuple[int, int, int]:
    return pixels(page, node).most_common(1)[0][0]


def rows(page: Browser) -> dict[str, tuple[str, str, str]]:
    """The table: (self, total, place) by name, in the order shown."""
    table = page.script(
        "return [...document.querySelectorAll('#weights tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    )
    return {name: (own, total, place) for *_, own, total, name, place in table}


def calls_by_name(page: Browser) -> dict[str, str]:
    """The first column of the table of a trace, in the order shown."""
    table = page.script(
        "return [...document.querySelectorAll('#weights tbody tr')]"
        ".map((row) => [row.cells[3].innerText.trim(), row.cells[0].innerText])"
    )
    return dict(table)


def settle(page: Browser, where: str) -> None:
    """Waits until the graph has arrived at a node and the table tells of it."""
    page.until("return document.querySelector('#scope').innerText.startsWith(arguments[0])", where)


def next_frame(page: Browser) -> None:
    """Waits until what was asked for is drawn."""
    page.script(
        "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def set_query(page: Browser, text: str) -> str:
    page.script(
        "const q = document.querySelector('#query'); q.value = arguments[0];"
        "q.dispatchEvent(new Event('input'))",
        text,
    )
    return page.text("#found") if text else ""


def choose_threads(page: Browser, label: str) -> None:
    page.script(
        "const s = document.querySelector('#threads');"
        "s.value = [...s.options].find((o) => o.text.startsWith(arguments[0])).value;"
        "s.dispatchEvent(new Event('change'))",
        label,
    )
