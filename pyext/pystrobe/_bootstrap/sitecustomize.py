# SPDX-License-Identifier: Apache-2.0
"""First on the PYTHONPATH of what ``pystrobe run --in-process`` starts.

Python imports a module of this name before the program begins. It leaves everything as it would be
without it: the path, the variable, and the environment's own sitecustomize, if there is one.
"""

import os
import sys


def _step_aside() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    rest = [entry for entry in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if entry != here]
    if any(rest):
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


try:
    import pystrobe.auto  # noqa: F401
finally:
    _step_aside()
