#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One file of what all proofs on a device found, and its tables: device_table.py FOUND_DIRECTORY
OUT_DIRECTORY SECONDS. See run_on_device.sh."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

#: What each program leaves.
PARTS = ("gpu", "places", "backward", "compiled", "shapes", "bounds", "libraries", "kernels")


def machine(device: dict[str, Any] | None) -> str:
    if device is None:
        return "Of what, is not known."
    cuda = f"CUDA {device['driver'] // 1000}.{device['driver'] % 1000 // 10}"
    return (
        f"{device['name']}, driver for {cuda}, PyTorch {device['torch']}, Triton"
        f" {device['triton']}, CPython {device['python']}, pystrobe {device['pystrobe']}."
    )


def main() -> int:
    found, out = Path(sys.argv[1]), Path(sys.argv[2])
    files = {part: found / f"{part}.json" for part in PARTS}
    parts = {
        part: json.loads(file.read_text(encoding="utf-8"))
        for part, file in files.items()
        if file.exists()
    }
    failures = [failure for part in parts.values() for failure in part["failures"]]
    failures += [f"{part}: nothing was left" for part in PARTS if part not in parts]
    whole = {"seconds": float(sys.argv[3]), "failures": failures, **parts}
    (out / "device.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    tables = [file.read_text(encoding="utf-8") for file in sorted(found.glob("*.md"))]
    lines = [
        "# What was seen on a GPU",
        machine(parts.get("gpu", {}).get("device")),
        *tables,
        f"Taken in {whole['seconds']:.0f} s. Not as it should be:",
        "\n".join(f"- {failure}" for failure in failures) or "- nothing",
    ]
    (out / "device.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    print(*(failures or ["all as it should be"]), sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
