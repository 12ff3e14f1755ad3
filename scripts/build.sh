#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the package and installs it into a virtual environment, telling how far it is:
#
#   scripts/build.sh BUILD_DIRECTORY VENV
#
# Without the C++ tests, which scripts/test.sh builds there, too. All that the build says is in
# BUILD_DIRECTORY.log; the end of it is shown when something fails.
# With PYSTROBE_STRICT set warnings are errors, and what is built there next has every header compiled
# by itself.
set -uo pipefail
build=$1 venv=$2
log=$build.log
mkdir -p "$(dirname "$log")"

# Ninja counts its steps: "[12/158] Building CXX object ...".
show_progress() {
  # Debian's mawk, left to itself, waits for 4 KiB before it reads a line.
  local interactive=()
  awk -W version 2>&1 </dev/null | grep -q '^mawk' && interactive=(-W interactive)
  awk "${interactive[@]}" '
    match($0, /\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, RSTART + 1, RLENGTH - 2), step, "/")
      if (step[2] < 10 || step[1] < next_step) next
      printf "  %3d %%  (%d of %d steps)\n", 100 * step[1] / step[2], step[1], step[2]
      fflush()
      next_step = step[1] + step[2] / 10
    }'
}

[ -e "$build/CMakeCache.txt" ] || how_long=": five to ten minutes on two cores the first time"
echo "Building the executable and the Python module${how_long:-} ..."
start=$SECONDS
strict=${PYSTROBE_STRICT:+ON}
"$venv/bin/python" -m pip install -v --no-build-isolation --no-deps --force-reinstall \
  -C build-dir="$build" -C cmake.define.PYSTROBE_BUILD_TESTS=ON \
  -C build.targets="pystrobe;pystrobe_core" \
  -C cmake.define.PYSTROBE_WERROR="${strict:-OFF}" \
  -C cmake.define.PYSTROBE_CHECK_HEADERS="${strict:-OFF}" . 2>&1 |
  tee "$log" | show_progress
if [ "${PIPESTATUS[0]}" != 0 ]; then
  grep -m 5 -E 'error:|Error ' "$log" >&2
  tail -n 30 "$log" >&2
  echo "The build failed; all it said is in $log" >&2
  exit 1
fi
echo "Built $venv/bin/pystrobe in $((SECONDS - start)) s"
