#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows on a real GPU what the tests show with a mock: minutes, on a machine with PyTorch and Triton.
#
#   bench/gpu/run_on_device.sh WHEEL OUT_DIRECTORY
#
# Leaves gpu.json and gpu.md in OUT_DIRECTORY. Exit status 1 when something was not as it should be.
set -euo pipefail
wheel=$1 out=$2
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
python3 -m pip install -q --no-index --no-deps --target "$site" "$wheel"
mkdir -p "$out"
PYTHONPATH=$site PYTHONUNBUFFERED=1 python3 "$(dirname "$0")/prove.py" "$out"
