# SPDX-License-Identifier: Apache-2.0
"""``python -m pystrobe``: becomes the native executable that is installed beside the package."""

from __future__ import annotations

import os
import sys

from pystrobe._executable import executable


def main() -> None:
    path = executable()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
