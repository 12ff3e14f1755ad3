# SPDX-License-Identifier: Apache-2.0
"""What programs do: JSON, text, sorting, objects, compression, a fixed amount of each."""

import json
import re
import zlib

import measured

WORD = re.compile(r"[a-z]+")


class Order:
    def __init__(self, number):
        self.number = number
        self.lines = [(number * k % 97, f"item {k}") for k in range(5)]

    def total(self):
        return sum(price for price, _ in self.lines)


def orders():
    made = [Order(number) for number in range(2500)]
    made.sort(key=Order.total)
    return [{"number": order.number, "lines": order.lines} for order in made]


def words(text):
    counts = {}
    for word in WORD.findall(text):
        counts[word] = counts.get(word, 0) + 1
    return counts


def once():
    text = json.dumps(orders())
    json.loads(text)
    words(text)
    zlib.compress(text.encode(), 6)


def main():
    for _ in range(100):
        once()


measured.run(main)
