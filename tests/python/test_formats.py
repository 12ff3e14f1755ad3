# SPDX-License-Identifier: Apache-2.0
"""Each format as a reader that is not ours understands it.

The recordings are those of tests/cpp/write/example_recordings.h, whose content is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import collapsed
import jsonschema
import pytest
from browser import Browser, missing, running_browser
from conftest import Example
from find import Interpreter
from pystrobe_command import Pystrobe, Recorded, find_executable
from readers import (
    REPOSITORY,
    check_with_ajv,
    pprof,
    pprof_samples,
    pprof_top,
    speedscope,
    speedscope_schema,
)
from running import running

pytestmark = pytest.mark.beside_others

MS = 1_000_000
EXAMPLES = ["shop", "odd", "empty", "idle", "deep", "large", "wide", "gpu", "calls"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if lack := missing():
        pytest.skip(f"{lack} (Debian packages chromium and chromium-driver)")
    with running_browser() as browser:
        yield browser


# --- pprof, read by Go's ---


def test_pprof_shows_self_and_total_of_each_function(example: Example) -> None:
    assert pprof_top(example("shop", ".pb.gz"), "wall") == {
        "Thread.run": (1000 * MS, 1500 * MS),
        "Json.encode": (600 * MS, 600 * MS),
        "crunch": (500 * MS, 500 * MS),
        "read": (300 * MS, 300 * MS),
        "main": (100 * MS, 1000 * MS),
        "<module>": (0, 1000 * MS),
    }


def test_pprof_has_every_view_in_one_file(example: Example) -> None:
    path = example("shop", ".pb.gz")
    cpu = {name: own for name, (own, _) in pprof_top(path, "cpu").items() if own}
    assert cpu == {"Json.encode": 600 * MS, "crunch": 125 * MS, "main": 100 * MS}
    gil = {name: own for name, (own, _) in pprof_top(path, "gil").items() if own}
    assert gil == {"Json.encode": 600 * MS, "main": 100 * MS}
    samples = {name: own for name, (own, _) in pprof_top(path, "samples").items() if own}
    assert samples["Json.encode"] == 600
    assert sum(samples.values()) == 2500


def test_pprof_has_the_calls_of_a_trace(example: Example) -> None:
    path = example("calls", ".pb.gz")
    assert pprof_top(path, "wall") == {
        "step": (80 * MS, 80 * MS),
        "main": (10 * MS, 70 * MS),
        "run": (10 * MS, 30 * MS),
    }
    assert {kind for sample in pprof_samples(path) for kind in sample.values} == {
        *("calls", "wall", "cpu")
    }
    calls = {name: own for name, (own, _) in pprof_top(path, "calls").items() if own}
    assert calls == {"step": 10_003, "check": 2, "main": 1}
    assert {name: own for name, (own, _) in pprof_top(path, "cpu").items() if own} == {
        **{"step": 40 * MS, "main": 5 * MS, "run": 5 * MS}
    }


@pytest.mark.parametrize("mode", ["wall", "cpu", "gil"])
def test_pprof_opens_in_the_mode_asked_for(example: Example, mode: str) -> None:
    assert f"\nType: {mode}\n" in pprof(example("shop", ".pb.gz", mode), "-top")


def test_pprof_knows_lines_threads_and_quality(example: Example) -> None:
    path = example("shop", ".pb.gz")
    samples = {(s.labels["thread_id"], s.stack): s for s in pprof_samples(path)}
    encode = ("<module> /app/shop.py:40", "main /app/shop.py:33", "Json.encode /app/json.py:14")
    sample = samples["4242", encode]
    assert sample.values == {
        "samples": 200,
        "wall": 200 * MS,
        "cpu": 200 * MS,
        "gil": 200 * MS,
    }
    assert sample.labels["thread"] == "MainThread [4242]"
    tags = pprof(path, "-tags", "-unit=ms")
    assert "MainThread [4242]" in tags
    assert "worker [4243]" in tags
    comments = pprof(path, "-comments")
    assert "python3 shop.py --port 8000" in comments
    assert "Python 3.13.0" in comments
    assert "proved exact" in comments


def test_pprof_can_pick_a_thread(example: Example) -> None:
    text = pprof(example("shop", ".pb.gz"), "-top", "-tagfocus=thread=worker.*")
    assert "crunch" in text
    assert "Json.encode" not in text


def test_pprof_keeps_odd_names(example: Example) -> None:
    shown = pprof(example("odd", ".pb.gz"), "-raw")
    for name in [
        "plain",
        'quote"and\\backslash',
        "semi;colon",
        "outer.<locals>.<lambda>",
        "party_\N{PARTY POPPER}",
        "nul\0inside",
        "broken\N{REPLACEMENT CHARACTER}",
        "[no Python frames]",
        "<unknown>",
    ]:
        assert f" {name} " in shown
    top = pprof_top(example("odd", ".pb.gz"), "wall")
    assert top["outer.<locals>.<lambda>"] == (2 * MS, 2 * MS)


@pytest.mark.parametrize(
    ("name", "total"), [("empty", 0), ("idle", 0), ("deep", 50), ("wide", 100_000)]
)
def test_pprof_of_extreme_recordings(example: Example, name: str, total: int) -> None:
    path = example(name, ".pb.gz")
    functions = pprof_top(path, "wall")
    assert sum(own for own, _ in functions.values()) == total * MS
    if name == "deep":
        assert len(functions) == 1000
        assert functions["level_0"] == (0, 50 * MS)


# --- speedscope, read by its schema and by its page ---


@pytest.mark.parametrize("name", EXAMPLES)
def test_speedscope_fits_its_schema(example: Example, name: str) -> None:
    """In each mode."""
    paths = []
    for mode in ("wall", "cpu", "gil"):
        path = example(name, ".speedscope.json", mode)
        paths.append(path.rename(path.with_name(f"{mode}.json")))
    check_with_ajv(speedscope_schema(), *paths)
    for path in paths:
        document = json.loads(path.read_text("utf-8"))
        assert document["profiles"]
        for profile in document["profiles"]:
            assert len(profile["samples"]) == len(profile["weights"])
            assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])


def test_speedscope_of_a_timeline_fits_its_schema(example: Example) -> None:
    path = example("gpu-timeline", ".speedscope.json")
    check_with_ajv(speedscope_schema(), path)
    document = json.loads(path.read_text("utf-8"))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    (calls,) = [one for one in document["profiles"] if one["type"] == "evented"]
    assert [(one["type"], names[one["frame"]], one["at"]) for one in calls["events"]] == [
        *[("O", "train", 0), ("O", "step", 40_000), ("C", "step", 70_000)],
        *[("O", "step", 2_040_000), ("C", "step", 2_060_000), ("C", "train", 4 * MS)],
    ]


def test_the_schema_refuses_what_does_not_fit(example: Example, tmp_path: Path) -> None:
    good = example("shop", ".speedscope.json")
    document = json.loads(good.read_text("utf-8"))
    document["profiles"][0]["unit"] = "fortnights"
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    with pytest.raises(AssertionError, match="broken"):
        check_with_ajv(speedscope_schema(), good, broken)


def test_speedscope_page_draws_it(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("shop", ".speedscope.json"))
    assert page.title.startswith("python3 shop.py --port 8000")
    assert page.threads == {
        "MainThread [4242]": "1.00s",
        "worker [4243]": "500.00ms",
        "thread [4250]": "1.00s",
    }
    assert page.functions == {
        "Json.encode": ("600.00ms (60%)", "600.00ms (60%)"),
        "read": ("300.00ms (30%)", "300.00ms (30%)"),
        "main": ("1.00s (100%)", "100.00ms (10%)"),
        "<module>": ("1.00s (100%)", "0.00ns (<0.01%)"),
    }


def test_speedscope_page_draws_cpu_time(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("shop", ".speedscope.json", "cpu"))
    assert page.threads == {"MainThread [4242]": "700.00ms", "worker [4243]": "125.00ms"}
    assert "read" not in page.functions


def test_speedscope_page_draws_traced_calls(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("calls", ".speedscope.json"))
    assert page.threads == {"MainThread [4242]": "70.00ms", "worker [4243]": "30.00ms"}
    assert page.functions["step"] == ("60.00ms (86%)", "60.00ms (86%)")


def test_speedscope_page_draws_a_timeline(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("gpu-timeline", ".speedscope.json"))
    assert page.functions["train"][0].startswith("4.00ms")
    assert page.functions["step"][0].startswith("50.00")


def test_speedscope_page_draws_odd_names(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("odd", ".speedscope.json"))
    assert 'quote"and\\backslash' in page.functions
    assert "semi;colon" in page.functions
    assert "</script><!--" in page.functions
    assert "outer.<locals>.<lambda>" in page.functions


def test_speedscope_page_opens_an_empty_recording(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("empty", ".speedscope.json"))
    assert page.title.startswith("python3 shop.py --port 8000")
    assert page.functions == {}


def test_speedscope_page_reads_the_pprof_file_alike(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("shop", ".pb.gz"))
    assert page.functions["Json.encode"][0].startswith("600.00ms")
    assert page.functions["Thread.run"] == ("1.50s (60%)", "1.00s (40%)")


# --- collapsed stacks, read by speedscope's page ---


def test_collapsed_stacks_open_in_speedscope(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("shop", ".collapsed"))
    assert page.functions == {
        "MainThread [4242]": ("1,000 (40%)", "0 (<0.01%)"),
        "<module> (/app/shop.py:40)": ("1,000 (40%)", "0 (<0.01%)"),
        "main (/app/shop.py:31)": ("100 (4.0%)", "100 (4.0%)"),
        "main (/app/shop.py:33)": ("900 (36%)", "0 (<0.01%)"),
        "Json.encode (/app/json.py:12)": ("400 (16%)", "400 (16%)"),
        "Json.encode (/app/json.py:14)": ("200 (8.0%)", "200 (8.0%)"),
        "read (/app/socket.py:7)": ("300 (12%)", "300 (12%)"),
        "worker [4243]": ("500 (20%)", "0 (<0.01%)"),
        "thread [4250]": ("1,000 (40%)", "0 (<0.01%)"),
        "Thread.run (/lib/threading.py:99)": ("1,500 (60%)", "1,000 (40%)"),
        "crunch (/app/w.py:3)": ("500 (20%)", "500 (20%)"),
    }


def test_collapsed_odd_names_open_in_speedscope(example: Example, browser: Browser) -> None:
    page = speedscope(browser, example("odd", ".collapsed"))
    assert page.functions["semi:colon (semi:colon:2)"] == ("1 (2.9%)", "1 (2.9%)")
    assert page.functions["root (app.py:1)"] == ("17 (49%)", "0 (<0.01%)")


@pytest.mark.parametrize(
    ("unit", "total"), [("samples", 2500), ("us", 2_500_000), ("ns", 2500 * MS)]
)
def test_collapsed_units_agree(example: Example, unit: str, total: int) -> None:
    stacks = collapsed.parse(example("shop", ".collapsed", "wall", unit).read_text("utf-8"))
    assert sum(stack.samples for stack in stacks) == total


# --- JSON, read by Python ---


@pytest.fixture(scope="module")
def json_schema() -> dict[str, Any]:
    schema = json.loads((REPOSITORY / "docs" / "json.schema.json").read_text("utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return dict(schema)


@pytest.mark.parametrize("name", [*EXAMPLES[:6], "split", "gpu", "gpu alone"])
def test_json_fits_its_schema(example: Example, json_schema: dict[str, Any], name: str) -> None:
    text = example(name, ".json").read_bytes().decode("utf-8")
    jsonschema.Draft7Validator(json_schema).validate(json.loads(text))


@pytest.mark.parametrize(
    ("name", "mode"), [("shop", "wall"), ("split", "wall"), ("gpu", "wall"), ("gpu", "gpu")]
)
def test_the_schema_knows_every_field(
    example: Example, json_schema: dict[str, Any], name: str, mode: str
) -> None:
    with_c_functions_only = {"cpu_split", "lines"}
    with_cpu_time_only = {"cpu_samples", "cpu_ns", "unseen_cpu_ns"}
    of_a_part_of_a_timeline = {"calls_began", "calls_began_before", "calls_going_on"}
    with_a_gpu_only = {"gpu", "gpu_ns", "gpu_count", "occupancy", "advice", "launched_by"}
    without_the_gpu_that_was_asked_for_only = {"gpu_failure"}
    with_times_only = {"median_at_least_ns", "median_at_most_ns"}
    within_another_range_only = {"ranges", "parent"}
    in_python_only = {"frame"}
    where_work_is_recorded_only = {"stream"}
    where_threads_were_held_only = {"held_count", "held_median_ns", "held_p99_ns"}
    where_a_timeline_was_not_kept_only = {"timeline_failure", "timeline_end_ns"}
    not_of_all = (
        with_c_functions_only
        | with_cpu_time_only
        | of_a_part_of_a_timeline
        | with_a_gpu_only
        | without_the_gpu_that_was_asked_for_only
        | with_times_only
        | within_another_range_only
        | in_python_only
        | where_work_is_recorded_only
        | where_threads_were_held_only
        | where_a_timeline_was_not_kept_only
    )

    def close(schema: Any) -> Any:
        if isinstance(schema, list):
            return [close(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        closed = {key: close(part) for key, part in schema.items()}
        if "required" in closed and "allOf" not in closed:
            assert set(closed["properties"]) - set(closed["required"]) <= not_of_all
            assert set(closed["required"]) <= set(closed["properties"])
            closed["additionalProperties"] = False
        return closed

    # A stack's fields are those of the weights too, which a closed schema cannot say.
    closed = close(json_schema)
    document = json.loads(example(name, ".json", mode).read_text("utf-8"))
    for thread in document["threads"]:
        thread["stacks"] = []
    assert ("cpu_split" in document) == (name == "split")
    assert ("gpu" in document) == (name == "gpu")
    assert ("gpu_ns" in document["total"]) == (mode == "gpu")
    assert with_cpu_time_only <= {*document["total"], *document["quality"]}
    jsonschema.Draft7Validator(closed).validate(document)


def test_json_sums_agree(example: Example) -> None:
    document = json.loads(example("shop", ".json").read_text("utf-8"))
    keys = ["samples", "cpu_samples", "gil_samples", "wall_ns", "cpu_ns", "gil_ns"]
    for key in keys:
        threads = [thread["total"][key] for thread in document["threads"]]
        assert sum(threads) == document["total"][key]
        for thread in document["threads"]:
            assert sum(stack[key] for stack in thread["stacks"]) == thread["total"][key]
        assert sum(one["self"][key] for one in document["functions"]) == document["total"][key]


def test_json_names_survive(example: Example) -> None:
    document = json.loads(example("odd", ".json").read_text("utf-8"))
    names = {function["name"] for function in document["functions"]}
    assert {"line\nfeed\r\ttab", "nul\0inside", "bell\adelete\x7f", "party_\U0001f389"} <= names
    assert "broken\N{REPLACEMENT CHARACTER}" in names
    assert [] in [stack["frames"] for thread in document["threads"] for stack in thread["stacks"]]


def test_the_program_in_the_documentation_runs(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (REPOSITORY / "docs" / "json.md").read_text("utf-8")
    program = text.partition("```python\n")[2].partition("```")[0]
    path = example("shop", ".json", "cpu")
    exec(compile(program.replace("profile.json", str(path)), "docs/json.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["600.0", "ms", "Json.encode"]
    assert "MainThread <module> > main > read 300000000" in lines


# --- a real recording: every format tells the same ---


@pytest.fixture(scope="module")
def recorded(newest: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    executable = find_executable()
    assert executable, "no pystrobe executable: build it, or name it in PYSTROBE"
    tool = Pystrobe(executable, tmp_path_factory.mktemp("recorded"))
    with running(newest, "burn", "nap") as target:
        return tool.attach(target.pid, seconds=2, rate=1000)


@pytest.fixture
def report(recorded: Recorded, tmp_path: Path) -> Callable[..., Path]:
    def write(suffix: str, *options: str) -> Path:
        path = tmp_path / f"report{suffix}"
        recorded.tool.succeed("report", str(recorded.path), "-o", str(path), *options)
        return path

    return write


def test_a_real_report_fits_each_schema(
    report: Callable[..., Path], json_schema: dict[str, Any]
) -> None:
    document = json.loads(report(".json").read_text("utf-8"))
    jsonschema.Draft7Validator(json_schema).validate(document)
    assert document["quality"]["taken"] > 0
    check_with_ajv(speedscope_schema(), report(".speedscope.json"))


@pytest.mark.parametrize("mode", ["wall", "cpu", "gil"])
def test_real_reports_agree_to_the_nanosecond(report: Callable[..., Path], mode: str) -> None:
    key = f"{mode}_ns"
    document = json.loads(report(".json").read_text("utf-8"))
    total = document["total"][key]
    assert total > 0
    self_times = {one["name"]: 0 for one in document["functions"]}
    for one in document["functions"]:
        self_times[one["name"]] += one["self"][key]
    from_pprof = pprof_top(report(".pb.gz"), mode)
    assert {name: own for name, (own, _) in from_pprof.items() if own} == {
        name: own for name, own in self_times.items() if own
    }
    lines = report(".collapsed", "--mode", mode, "--unit", "ns").read_text("utf-8")
    assert sum(stack.samples for stack in collapsed.parse(lines)) == total
    drawn = json.loads(report(".speedscope.json", "--mode", mode).read_text("utf-8"))
    assert sum(sum(profile["weights"]) for profile in drawn["profiles"]) == total


def test_a_real_report_is_drawn(report: Callable[..., Path], browser: Browser) -> None:
    page = speedscope(browser, report(".speedscope.json", "--mode", "cpu"))
    assert {"burn50", "burn30", "burn20"} <= page.functions.keys()
