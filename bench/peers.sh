#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the profilers that pystrobe is compared with into a virtual environment:
#
#   bench/peers.sh DIRECTORY
#
# CPython's own profiling.sampling comes with Python 3.15: tests/interpreters/fetch.sh sid.
set -euo pipefail
directory=${1:?usage: bench/peers.sh DIRECTORY}
[ ! -e "$directory/.complete-3" ] || exit 0
"${PYTHON:-python3}" -m venv "$directory"
"$directory/bin/pip" install -q --disable-pip-version-check \
  py-spy==0.4.3 austin-dist==4.0.0 austin-python==2.4.0 scalene==2.4.0 pyinstrument==5.1.3
# Tracers work inside the interpreter that they trace: the newest of each that has a wheel for it.
for python in 3.9 3.10 3.11 3.12 3.13 3.14 3.15; do
  for package in viztracer yappi 'line_profiler tomli' pyinstrument; do
    "$directory/bin/pip" install -q --disable-pip-version-check --only-binary=:all: \
      --python-version "$python" --target "$directory/tracers-$python" --upgrade $package ||
      echo "peers: $package has no wheel for $python" >&2
  done
done
touch "$directory/.complete-3"
