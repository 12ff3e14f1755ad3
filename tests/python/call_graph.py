# SPDX-License-Identifier: Apache-2.0
"""Who calls whom in a shared library, as its machine code has it."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>.*)>:$")
BRANCH = re.compile(r"\t(?:bnd )?(?P<what>call|jmp|j[a-z]{1,3})\s+(?P<to>.*)$")
SYMBOL = re.compile(r"<(?P<name>.*?)(?:\+0x[0-9a-f]+)?>$")
COMPUTED = "an address that is computed"


@dataclass
class CallGraph:
    calls: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def reachable(self, first: str, stop: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """(caller, callee) of `first` and all that it leads to, but beyond those to stop at."""
        seen, todo = {first}, [first]
        while todo:
            caller = todo.pop()
            for callee in sorted(self.calls.get(caller, ())):
                yield caller, callee
                if callee not in seen and not stop(callee):
                    seen.add(callee)
                    todo.append(callee)


def read_call_graph(library: Path) -> CallGraph:
    """Jumps out of a function count as calls; those through a register or memory as COMPUTED."""
    objdump = ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", str(library)]
    # Few of a million lines.
    wanted = ["grep", "-E", r"^[0-9a-f]+ <|\s(call|j[a-z]+) "]
    with subprocess.Popen(objdump, stdout=subprocess.PIPE) as disassembly:
        text = subprocess.run(
            wanted, stdin=disassembly.stdout, capture_output=True, text=True, check=True
        ).stdout
    assert disassembly.returncode == 0
    graph = CallGraph()
    function = within = ""
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            function = match["name"]
            within = f"<{function}+0x"
            continue
        if within in line:
            continue
        branch = BRANCH.search(line)
        if not branch:
            continue
        symbol = SYMBOL.search(branch["to"])
        if branch["to"].startswith("*"):
            graph.calls[function].add(COMPUTED)
        elif symbol and symbol["name"] != function:
            graph.calls[function].add(symbol["name"])
    return graph
