# SPDX-License-Identifier: Apache-2.0
"""``python -m pystrobe._launch SCRIPT args``: becomes ``python SCRIPT args``, to be sampled from
inside as $PYSTROBE_LAUNCH says. The program sees nothing of this module: not on its stack, nor in
its arguments.
"""

import os
import sys


def main() -> None:
    bootstrap = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bootstrap")
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([bootstrap, *([inherited] if inherited else [])])
    # By another name until here: the environment may import pystrobe.auto in every interpreter.
    os.environ["PYSTROBE_ENABLE"] = os.environ.pop("PYSTROBE_LAUNCH", "")
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    main()
