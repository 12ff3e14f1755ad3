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

cmake --build "$build" || exit 1
ctest --test-dir "$build" --no-tests=error --output-on-failure \
  --parallel "$(nproc)" --output-junit "$results/cpp.xml" || status=1

PYSTROBE=$venv/bin/pystrobe PATH=$venv/bin:$PATH \
  "$venv/bin/python" -m pytest --junitxml "$results/python.xml" || status=1

"$venv/bin/python" scripts/test_summary.py "$results/cpp.xml" "$results/python.xml" || status=1
exit $status
