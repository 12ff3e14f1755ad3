# SPDX-License-Identifier: Apache-2.0
"""What a timeline of a program of calls costs, takes of file, and has of the calls:

    timeline.py TOOL UNITS DIRECTORY

`fib(20)` is called UNITS times alone, and again under the tool, which then saves what it has in
each of its formats. stdout: JSON with the seconds of both (`before`, `under`) and of the saving
(`save`, by format), the size of each file (`bytes`, by format), how many calls of `fib` were made
and how many are in the last of the files, which is JSON (`made`, `kept`), and the tool's `version`.
Runs on any interpreter from 3.9 on; the tools must be importable, and `_traced.py` of
`pystrobe bench` beside it.
"""

import json
import os
import sys
import time

from _traced import CALLS, task_fib, version


class Pystrobe:
    package = "pystrobe"
    formats = ("strobe", "perfetto-trace", "trace.json")

    def __init__(self, calls, timeline=True):
        import pystrobe

        self.tracer = pystrobe.Tracer(timeline=timeline)
        self.start, self.stop, self.save = self.tracer.start, self.tracer.stop, self.tracer.save

    @staticmethod
    def kept(text):
        return text.count('"name":"fib"')


class PystrobeSums(Pystrobe):
    """The same without the timeline, for what that takes more."""

    formats = ("strobe", "json")

    def __init__(self, calls):
        super().__init__(calls, timeline=False)

    @staticmethod
    def kept(text):
        functions = json.loads(text)["functions"]
        return sum(one["self"]["samples"] for one in functions if one["name"] == "fib")


class VizTracer:
    package = "viztracer"
    formats = ("json.gz", "json")

    def __init__(self, calls, **options):
        import viztracer

        self.tracer = viztracer.VizTracer(verbose=0, ignore_c_function=True, **options)
        self.start, self.stop, self.save = self.tracer.start, self.tracer.stop, self.tracer.save

    @staticmethod
    def kept(text):
        return text.count('"name": "fib (')


TOOLS = {
    "pystrobe": Pystrobe,
    "pystrobe, sums": PystrobeSums,
    "VizTracer": VizTracer,
    #: It keeps a million by default, the last ones.
    "VizTracer with room": lambda calls: VizTracer(calls, tracer_entries=calls + 100_000),
}


def timed(work, *arguments):
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def units_of_work(units):
    for _ in range(units):
        task_fib()


def main():
    name, units, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    _, calls = CALLS["fib"]
    made = calls * units
    units_of_work(units)  # the first time the interpreter specialises what it runs
    before = timed(units_of_work, units)
    tool = TOOLS[name](made)
    tool.start()
    under = timed(units_of_work, units)
    tool.stop()
    files = {form: os.path.join(directory, f"timeline.{form}") for form in tool.formats}
    save = {form: timed(tool.save, path) for form, path in files.items()}
    with open(files[tool.formats[-1]]) as file:
        kept = tool.kept(file.read())
    print(
        json.dumps(
            {
                "before": before,
                "under": under,
                "save": save,
                "bytes": {form: os.path.getsize(path) for form, path in files.items()},
                "made": made,
                "kept": kept,
                "version": version(tool.package),
            }
        )
    )


if __name__ == "__main__":
    main()
