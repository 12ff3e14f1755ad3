#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows on a real GPU what the tests show with a mock: minutes, on a machine with PyTorch and Triton.
#
#   bench/gpu/run_on_device.sh WHEEL OUT_DIRECTORY
#
# Leaves gpu.json, gpu.md, places.json, backward.json, backward.html, compiled.json, kernels.json and kernels.md in OUT_DIRECTORY. Exit status 1 when something was not as it should be.
set -euo pipefail
wheel=$1 out=$2
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
python3 -m pip install -q --no-index --no-deps --target "$site" "$wheel"
mkdir -p "$out"
export PYTHONPATH=$site PYTHONUNBUFFERED=1
status=0
for program in prove prove_places prove_backward prove_compiled prove_kernels; do
  python3 "$(dirname "$0")/$program.py" "$out" || status=1
done
exit $status
