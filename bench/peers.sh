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
[ ! -e "$directory/.complete-2" ] || exit 0
"${PYTHON:-python3}" -m venv "$directory"
"$directory/bin/pip" install -q --disable-pip-version-check \
  py-spy==0.4.3 austin-dist==4.0.0 austin-python==2.4.0 scalene==2.4.0 pyinstrument==5.1.3
touch "$directory/.complete-2"
