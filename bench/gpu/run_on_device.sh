#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows on a real GPU what the tests show with a mock: minutes, on a machine with PyTorch, Triton,
# CuPy, Numba and JAX.
#
#   bench/gpu/run_on_device.sh WHEEL OUT_DIRECTORY [LIBCUPTI.SO.12]
#
# Leaves device.json and device.md, which device_table.py makes of what each program found, and
# backward.html and ranges.trace.json in OUT_DIRECTORY. Exit status 1 when something was not as it should be.
set -euo pipefail
wheel=$1 out=$2
older=(${3:+"$3"})
here=$(dirname "$0")
site=$(mktemp -d) found=$(mktemp -d)
trap 'rm -rf "$site" "$found"' EXIT
python3 -m pip install -q --no-index --no-deps --target "$site" "$wheel"
mkdir -p "$out"
export PYTHONPATH=$site PYTHONUNBUFFERED=1 PATH=$site/bin:$PATH
status=0
for program in prove prove_places prove_backward prove_compiled prove_shapes prove_bounds prove_libraries \
  prove_kernels; do
  echo "== $program, after $SECONDS s"
  python3 "$here/$program.py" "$found" "${older[@]}" || status=1
done
python3 "$here/device_table.py" "$found" "$out" "$SECONDS" || status=1
cp "$found/backward.html" "$found/ranges.trace.json" "$out" || status=1
exit $status
