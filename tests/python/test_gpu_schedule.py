# SPDX-License-Identifier: Apache-2.0
"""Profiler(gpu=True, schedule=): which steps are recorded, and who is told of them."""

from __future__ import annotations

import pytest
from gpu_traced import traced

pytestmark = pytest.mark.beside_others


def test_a_schedule_makes_a_profile_of_its_steps() -> None:
    found = traced(
        """
        seen = []
        schedule = gpu.schedule(wait=1, warmup=1, active=2, repeat=2)
        with pystrobe.Profiler(
            mode="gpu",
            schedule=schedule,
            on_trace_ready=lambda p: seen.append(p.profile.gpu.quality.kernel_launches),
        ) as profiler:
            for step in range(12):
                many(10 + step)
                profiler.step()
        print(json.dumps([seen, [w.count for w in profiler.profile.gpu.sums]]))
        """
    )
    assert found == [[12 + 13, 16 + 17], [16 + 17]]


def test_a_schedule_that_ends_early_gives_what_there_is() -> None:
    found = traced(
        """
        schedule = gpu.schedule(active=5, wait=1)
        with pystrobe.Profiler(mode="gpu", schedule=schedule) as profiler:
            for _ in range(3):
                many(10)
                profiler.step()
            many(10)
        print(profiler.profile.gpu.quality.records)
        """
    )
    assert found == 30


def test_who_is_called_with_a_profile_may_stop_or_fail() -> None:
    found = traced(
        """
        def fails(profiler):
            seen.append(profiler.profile.gpu.quality.records)
            raise ValueError
        def make(ready, **schedule):
            schedule = gpu.schedule(wait=0, active=1, **schedule)
            return pystrobe.Profiler(mode="gpu", schedule=schedule, on_trace_ready=ready)
        def errors(call):
            try:
                call()
            except (ValueError, pystrobe.Error) as error:
                return type(error).__name__
        seen, raised = [], []
        profiler = make(fails, warmup=0)
        profiler.start()
        for _ in range(3):
            leaf()
            raised.append(errors(profiler.step))
        profiler._on_trace_ready = None
        leaf()
        profiler.stop()
        stopped = make(lambda profiler: profiler.stop(), warmup=1)
        stopped.start()
        raised += [errors(stopped.step), errors(stopped.step), errors(stopped.step)]
        with pystrobe.Profiler(mode="gpu") as last:
            leaf()
        print(json.dumps([seen, raised, last.profile.gpu.quality.records]))
        """
    )
    assert found == [[1, 1, 1], ["ValueError"] * 3 + [None, None, "Error"], 1]


def test_schedules_of_torch_serve_as_well() -> None:
    found = traced(
        """
        import enum
        class ProfilerAction(enum.Enum):
            NONE = 0
            WARMUP = 1
            RECORD = 2
            RECORD_AND_SAVE = 3
        actions = [ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE]
        with pystrobe.Profiler(mode="gpu", schedule=lambda step: actions[step]) as profiler:
            many(3)
            profiler.step()
            many(4)
            profiler.step()
        print(profiler.profile.gpu.quality.records)
        """
    )
    assert found == 4


@pytest.mark.parametrize("timeline", [False, True])
def test_a_step_is_a_range_by_the_name_that_torch_gives_it(timeline: bool) -> None:
    found = traced(
        f"""
        schedule = gpu.schedule(wait=1, warmup=1, active=2)
        with pystrobe.Profiler(mode="gpu", schedule=schedule, timeline={timeline}) as profiler:
            for step in range(4):
                with gpu.range("forward"):
                    many(1 + step)
                profiler.step()
        ranges = [[r.path, r.count, sum(s.works for s in r.streams)]
                  for r in profiler.profile.ranges]
        print(json.dumps(ranges))
        """
    )
    one_by_one = [
        [["ProfilerStep#2"], 1, 3],
        [["ProfilerStep#2", "forward"], 1, 3],
        [["ProfilerStep#3"], 1, 4],
        [["ProfilerStep#3", "forward"], 1, 4],
    ]
    together = [[["ProfilerStep"], 2, 7], [["ProfilerStep", "forward"], 2, 7]]
    assert sorted(found) == (one_by_one if timeline else together)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("5", "the schedule is 5"),
        ("lambda step: None", "the schedule gave None for step 0"),
        ("gpu.schedule(active='2')", "active is '2'"),
        ("gpu.schedule(active=1, wait=-1)", "wait is -1"),
        ("gpu.schedule(active=1), on_trace_ready=5", "on_trace_ready is 5"),
    ],
)
def test_what_is_no_schedule_is_told(schedule: str, message: str) -> None:
    found = traced(
        f"""
        try:
            pystrobe.Profiler(mode="gpu", schedule={schedule}).start()
        except pystrobe.InvalidArgumentError as error:
            print(json.dumps(str(error)))
        """
    )
    assert message in found


def test_a_schedule_that_fails_later_leaves_the_step_as_it_was() -> None:
    found = traced(
        """
        actions = ["RECORD", "RECORD", None, "RECORD_AND_SAVE"]
        asked = []
        class Action:
            def __init__(self, name):
                self.name = name
        def schedule(step):
            asked.append(step)
            return Action(actions.pop(0))
        with pystrobe.Profiler(mode="gpu", schedule=schedule) as profiler:
            leaf()
            profiler.step()
            leaf()
            try:
                profiler.step()
            except pystrobe.InvalidArgumentError as error:
                failed = str(error)[:16]
            leaf()
            profiler.step()
        ranges = [[r.name, r.count] for r in profiler.profile.ranges]
        print(json.dumps([failed, asked, ranges, profiler.profile.gpu.quality.records]))
        """
    )
    assert found[0] == "the schedule gav"
    assert found[1] == [0, 1, 2, 2]
    assert found[2] == [["ProfilerStep", 3]]
    assert found[3] == 3


def test_who_is_called_with_a_profile_may_start_anew() -> None:
    found = traced(
        """
        seen = []
        def again(profiler):
            seen.append([r.name for r in profiler.profile.ranges])
            if len(seen) == 1:
                profiler.stop()
                profiler.start()
        schedule = gpu.schedule(active=1, wait=1)
        profiler = pystrobe.Profiler(mode="gpu", schedule=schedule, on_trace_ready=again)
        profiler.start()
        for _ in range(6):
            leaf()
            profiler.step()
        print(json.dumps(seen))
        """
    )
    assert found[0] == ["ProfilerStep"]
    assert all(len(names) == 1 for names in found), "none is left open"
