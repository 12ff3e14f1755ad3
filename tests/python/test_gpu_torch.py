# SPDX-License-Identifier: Apache-2.0
"""torch.profiler, started while a GPU is traced; what stands for it is as little as is watched."""

from __future__ import annotations

import textwrap

from gpu_traced import traced

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
