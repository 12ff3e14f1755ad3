#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# dist/*.whl, stripped, tagged for the oldest glibc it runs on: scripts/wheel.sh
# BUILD_DIRECTORY VENV.
set -euo pipefail
build=$1 venv=$2
rm -rf dist build/wheel-raw
echo "wheel: building"
"$venv/bin/python" -m build --wheel --no-isolation --outdir build/wheel-raw \
  -C build-dir="$build" -C cmake.define.PYSTROBE_BUILD_TESTS=ON . >build/wheel.log 2>&1 || {
  tail -n 30 build/wheel.log >&2
  echo "wheel: the build failed (log: build/wheel.log)" >&2
  exit 1
}
PATH=$venv/bin:$PATH "$venv/bin/auditwheel" repair --wheel-dir dist build/wheel-raw/*.whl \
  >build/auditwheel.log 2>&1 || {
  cat build/auditwheel.log >&2
  exit 1
}
ls -1 dist/*.whl
