#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the C++ tests and the end-to-end tests and closes with one line that counts both:
#
#   scripts/test.sh BUILD_DIRECTORY VENV
#
# Exit status 0 only when tests of both kinds ran and none failed.
set -uo pipefail
build=$1 venv=$2

results=$PWD/build/test-results
rm -rf "$results"
mkdir -p "$results"
status=0

# What programs use of the package themselves depends on the interpreter. Without
# PYSTROBE_MATRIX the oldest and the newest that this machine has stand beside the one of VENV.
some=(3.9 3.13)
[ -z "${PYSTROBE_MATRIX:-}" ] || some=()
cmake -D PYSTROBE_OTHER_PYTHONS="$(tests/interpreters/find.py --headers "${some[@]}")" "$build" \
  >/dev/null || exit 1
cmake --build "$build" --target all other_pythons || exit 1
tests/interpreters/packages.sh "$build" "$venv"
ctest --test-dir "$build" --no-tests=error --output-on-failure \
  --parallel "$(nproc)" --output-junit "$results/cpp.xml" || status=1

export PYSTROBE=$venv/bin/pystrobe PYSTROBE_BUILD=$build PATH=$venv/bin:$PATH
# A file of tests that may run beside others on each CPU; then one test at a time.
python -m pytest -m "beside_others and not alone" --numprocesses "$(nproc)" --dist loadfile -p no:rerunfailures \
  --junitxml "$results/beside.xml" || status=1
python -m pytest -m "alone or not beside_others" --junitxml "$results/alone.xml" || status=1

python scripts/test_summary.py "$results/"{cpp,beside,alone}.xml || status=1
exit $status
