# SPDX-License-Identifier: Apache-2.0
"""torch.profiler, started while a GPU is traced; what stands for it is as little as is watched."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from gpu_traced import traced

pytestmark = pytest.mark.beside_others

TORCH_PROFILER = """
import types, warnings
warnings.simplefilter("always")

class Activity:
    def __init__(self, name):
        self.name = name

class profile:
    def __init__(self, *names):
        self.activities = {Activity(name) for name in names}
    def start(self):
        return "started"

class old_profile:
    use_device = "cuda"
    def __enter__(self):
        return self

def module(name, **contents):
    sys.modules[name] = types.SimpleNamespace(**contents)

module("torch.profiler", profile=profile)
module("torch.autograd.profiler", profile=old_profile)
begins = profile.start, old_profile.__enter__

def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        call()
    return [[str(one.message)[:36], one.filename == __file__] for one in caught]
"""


def test_torchs_profiler_is_told_that_it_will_see_no_gpu() -> None:
    found = traced(
        TORCH_PROFILER.replace("__file__", "'<string>'")
        + textwrap.dedent(
            """
            with pystrobe.Profiler(mode="gpu"):
                during = [
                    warned(profile("CPU", "CUDA").start),
                    warned(profile("CPU").start),
                    warned(lambda: old_profile().__enter__()),
                ]
            restored = begins == (profile.start, old_profile.__enter__)
            print(json.dumps([during, restored, warned(profile("CUDA").start)]))
            """
        )
    )
    told = [["torch.profiler will see no GPU: pyst", True]]
    assert found == [[told, [], told], True, []]


def test_modules_are_watched_for_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "torch" / "autograd").mkdir(parents=True)
    # In PyTorch's order.
    (tmp_path / "torch" / "__init__.py").write_text(
        "import torch.autograd\nimport torch.profiler\n"
    )
    (tmp_path / "torch" / "autograd" / "__init__.py").write_text("import torch.autograd.profiler\n")
    (tmp_path / "torch" / "autograd" / "profiler.py").write_text(
        "class profile:\n    def __enter__(self): return self\n"
    )
    (tmp_path / "torch" / "profiler.py").write_text(
        "class profile:\n    def start(self): return 'started'\n"
    )
    found = traced(
        f"""
        import importlib
        sys.path.insert(0, {str(tmp_path)!r})
        finders = list(sys.meta_path)
        with pystrobe.Profiler(mode="gpu"):
            watching = len(sys.meta_path) - len(finders)
            import torch
            spec = torch.__spec__.name, torch.__spec__.loader.name, torch.profiler.__file__[-11:]
            during = hasattr(torch.profiler.profile.start, "__wrapped__")
        after = hasattr(torch.profiler.profile.start, "__wrapped__")
        importlib.reload(torch.profiler)
        later = hasattr(torch.profiler.profile.start, "__wrapped__")
        print(json.dumps([watching, during, after, later, sys.meta_path == finders, spec]))
        """
    )
    assert found == [1, True, False, False, True, ["torch", "torch", "profiler.py"]]


def test_a_finder_that_asks_all_others_does_not_ask_for_ever(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("value = 7\n")
    found = traced(
        f"""
        import importlib.abc
        sys.path.insert(0, {str(tmp_path)!r})

        class Asks(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                for finder in sys.meta_path:
                    spec = finder is not self and finder.find_spec(name, path, target)
                    if spec:
                        return spec

        with pystrobe.Profiler(mode="gpu"):
            sys.meta_path.insert(0, Asks())
            import torch
        with pystrobe.Profiler(mode="gpu"):
            del sys.modules["torch"]
            sys.meta_path.append(Asks())
            import torch
        print(torch.value)
        """
    )
    assert found == 7


def test_an_import_is_as_it_would_be_without(tmp_path: Path) -> None:
    """Looked for before, by a loader that is of others too, where watching fails."""
    found = traced(
        """
        import importlib.abc, importlib.machinery, importlib.util, warnings
        from pystrobe.gpu._imports import WhenImported

        class Shared(importlib.abc.Loader):
            def exec_module(self, module):
                module.made = module.made + 1 if hasattr(module, "made") else 1

        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name in ("one", "other"):
                    return importlib.machinery.ModuleSpec(name, shared)

        def fails():
            told.append(sorted(set(sys.modules) & {"one", "other"}))
            raise RuntimeError("no")

        shared, told = Shared(), []
        sys.meta_path.append(Finder())
        watcher = WhenImported(["one"], fails)
        looked = importlib.util.find_spec("one").origin
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import one, other
        watcher.stop()
        importlib.reload(one)
        are_shared = [module.__spec__.loader is shared for module in (one, other)]
        told_why = [str(warning.message) for warning in caught]
        print(json.dumps([looked, told, are_shared, one.made, other.made, told_why]))
        """
    )
    why = "one is not watched: RuntimeError('no')"
    assert found == [None, [["one"]], [True, True], 2, 1, [why]]


def test_a_child_imports_what_is_watched_in_its_parent(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("value = 7\n")
    found = traced(
        f"""
        import os
        sys.path.insert(0, {str(tmp_path)!r})
        finders = list(sys.meta_path)
        with pystrobe.Profiler(mode="gpu"):
            child = os.fork()
            if child == 0:
                import torch
                os._exit(torch.value if sys.meta_path == finders else 1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            during = len(sys.meta_path) - len(finders)
        print(json.dumps([status, during]))
        """
    )
    assert found == [7, 1]
