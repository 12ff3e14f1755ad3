# SPDX-License-Identifier: Apache-2.0
"""The HTML report is to be read by everyone: contrast, narrow and wide windows, paper."""

from __future__ import annotations

import pytest
from browser import Browser
from html_page import Node, canvas_box, encode, fill, next_frame, pixels, set_query, settle

pytestmark = pytest.mark.beside_others

CONTRAST = """
const luminance = (color) => {
  const [r, g, b] = color.map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const parse = (text) => {
  const found = text.match(/[\\d.]+/g).map(Number);
  return text.startsWith('color(') ? [255 * found[0], 255 * found[1], 255 * found[2], found[3] ?? 1]
                                   : [...found, 1].slice(0, 4);
};
const backOf = (e) => {
  for (; e; e = e.parentElement) {
    const color = parse(getComputedStyle(e).backgroundColor);
    if (color[3] === 1) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const poor = [];
for (const e of document.body.querySelectorAll('*')) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !e.checkVisibility() || e.disabled || e.closest('script, select, noscript')) continue;
  const a = luminance(parse(getComputedStyle(e).color).slice(0, 3)), b = luminance(backOf(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push(`${e.tagName} ${e.innerText.slice(0, 30)}: ${ratio.toFixed(2)}`);
}
return poor;
"""


def luminance(color: tuple[int, int, int]) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (v / 255 for v in color)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(shop: Browser, scheme: str) -> None:
    shop.color_scheme(scheme)
    shop.click("#help")
    next_frame(shop)
    back = luminance(fill(shop, Node(shop, 3, 0.61, 0.66)))
    assert (back > 0.8) if scheme == "light" else (back < 0.05)
    assert shop.script(CONTRAST) == []
    for query in ("", "json"):
        set_query(shop, query)
        next_frame(shop)
        for node in (
            encode(shop),
            Node(shop, 2, 0, 2 / 3),
            Node(shop, 1, 2 / 3, 1),
            Node(shop, 0, 0, 1),
        ):
            colors = pixels(shop, node)
            ground = luminance(colors.most_common(1)[0][0])
            light, dark = max(map(luminance, colors)), min(map(luminance, colors))
            best = max((light + 0.05) / (ground + 0.05), (ground + 0.05) / (dark + 0.05))
            assert best >= 4.5, f"text in the graph, search {query!r}"


@pytest.mark.parametrize("width", [400, 1280, 3840])
def test_fits_narrow_and_wide_windows(shop: Browser, width: int) -> None:
    shop.resize(width, 900)
    assert shop.script("return document.documentElement.scrollWidth") <= width
    assert canvas_box(shop)[2] > 0.5 * width
    node = encode(shop)
    shop.click_at(node.x, node.y)
    settle(shop, "in Json.encode")


def test_prints_in_light_colours_on_one_sheet_and_a_table(shop: Browser) -> None:
    shop.color_scheme("dark")
    shop.script("dispatchEvent(new Event('beforeprint'))")
    assert luminance(fill(shop, Node(shop, 3, 0.61, 0.66))) > 0.9
    assert not shop.script("return document.querySelector('.toolbar').checkVisibility()")
    shop.script("dispatchEvent(new Event('afterprint'))")
    assert luminance(fill(shop, Node(shop, 3, 0.61, 0.66))) < 0.05
    assert shop.script("return document.querySelector('.toolbar').checkVisibility()")
