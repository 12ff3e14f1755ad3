#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit result files and prints one closing line, as pytest does for its own tests.

Exits with 1 when a file is missing, holds no test, or a test failed.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("error") is not None:
        return "errors"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def main(paths: list[str]) -> int:
    counts: Counter[str] = Counter()
    seconds = 0.0
    ran_everywhere = True
    for path in map(Path, paths):
        cases: list[ElementTree.Element] = []
        if path.exists():
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        here = Counter(outcome(case) for case in cases)
        if sum(here.values()) == here["skipped"]:
            print(f"no test ran: {path.name}")
            ran_everywhere = False
        counts += here
        seconds += sum(float(case.get("time") or 0) for case in cases)
    parts = [
        f"{counts[what]} {what}"
        for what in ("failed", "passed", "skipped", "errors")
        if counts[what]
    ]
    text = f" {', '.join(parts) or 'no tests ran'} in {seconds:.2f}s "
    print(text.center(80, "="))
    return 0 if ran_everywhere and not counts["failed"] and not counts["errors"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
