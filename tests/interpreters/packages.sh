#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Packages that tests need of the interpreters for which the build has made the extension module,
# beside that module, so that nothing is installed into them:
#
#   tests/interpreters/packages.sh BUILD_DIRECTORY VENV
#
# Where there is no wheel for an interpreter (yet) it says so, and the tests that need it are skipped.
set -euo pipefail
build=$1 venv=$2

for core in "$build"/python/*/_core*.so; do
  [ -e "$core" ] || continue
  place=$(dirname "$core")
  name=$(basename "$place") # 3.13, 3.13t
  for package in greenlet debugpy; do
    [ ! -d "$place/packages/$package" ] || continue
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --upgrade \
      --target "$place/packages" --only-binary :all: --python-version "${name%t}" \
      --implementation cp --abi "cp${name/./}" "$package" ||
      echo "packages: no $package for CPython $name" >&2
  done
done
