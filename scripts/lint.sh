#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-format, clang-tidy, ruff and mypy over the whole tree: scripts/lint.sh VENV. All of them run
# even when one complains; exit status 1 when one did. LINT_TIDY=0 leaves out clang-tidy (minutes).
set -uo pipefail
venv=$1
status=0

# layout_tables.cpp is generated.
mapfile -t cpp < <(git ls-files '*.cpp' '*.h' '*.c' ':!sampler/pyabi/layout_tables.cpp')
echo "lint: clang-format, ${#cpp[@]} files"
clang-format-19 --dry-run --Werror "${cpp[@]}" || status=1

echo "lint: ruff"
"$venv/bin/ruff" check -q . || status=1
"$venv/bin/ruff" format -q --check . || status=1

echo "lint: mypy"
"$venv/bin/mypy" || status=1

if [ "${LINT_TIDY:-1}" = 1 ]; then
  cmake --preset tidy >/dev/null \
    -Dpybind11_DIR="$("$venv/bin/python" -m pybind11 --cmakedir)" || exit 1
  mapfile -t units < <(git ls-files 'profiler/*.cpp' 'sampler/*.cpp' 'gpu/*.cpp' 'cli/*.cpp' 'pyext/*.cpp')
  echo "lint: clang-tidy, ${#units[@]} files"
  printf '%s\n' "${units[@]}" |
    xargs -P "$(nproc)" -n 1 clang-tidy-19 -p build/tidy --quiet 2>/dev/null || status=1
fi

[ $status = 0 ] && echo "lint: clean"
exit $status
