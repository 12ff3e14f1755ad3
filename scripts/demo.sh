#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows pystrobe at work: starts a program that compiles and unparses Python's whole standard
# library over and over, attaches to it by its PID, prints where its time went and leaves
# demo.strobe (the recording) and demo.html (the flame graph): scripts/demo.sh VENV.
set -euo pipefail
venv=$1
pystrobe=$venv/bin/pystrobe

"$venv/bin/python" -W ignore - <<'PYTHON' &
import ast
import pathlib
import sysconfig


def rewrite(file):
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        compile(tree, str(file), "exec", dont_inherit=True)
        ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # the library's own tests hold broken files on purpose


files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py"))
while True:
    for file in files:
        if "site-packages" not in file.parts:
            rewrite(file)
PYTHON
target=$!
trap 'kill $target 2>/dev/null || true' EXIT

# Where the kernel lets a process be read by its parents only, attaching takes root.
scope=/proc/sys/kernel/yama/ptrace_scope
attach=("$pystrobe")
if [ "$(id -u)" != 0 ] && [ -r $scope ] && [ "$(cat $scope)" != 0 ]; then
  echo "This kernel lets only root attach to a running program (yama): using sudo." >&2
  attach=(sudo "$pystrobe")
fi

rm -f demo.strobe demo.html
sleep 2  # it is to be at work, not starting
echo "\$ pystrobe attach $target -d 5 -o demo.strobe" >&2
"${attach[@]}" attach "$target" -d 5 -o demo.strobe
echo "\$ pystrobe report demo.strobe -o demo.html" >&2
"$pystrobe" report demo.strobe -o demo.html >/dev/null  # the table has been shown
echo "Next: docs/profile_your_script.md; the command is $pystrobe" >&2
