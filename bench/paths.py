# SPDX-License-Identifier: Apache-2.0
"""Where things are; makes the tests' modules importable."""

from __future__ import annotations

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
REPOSITORY = BENCH.parent
RESULTS = BENCH / "results"
PEERS = REPOSITORY / "build" / "bench-peers"

sys.path[:0] = [str(REPOSITORY / "tests" / part) for part in ("python", "interpreters")]
