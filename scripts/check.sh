#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a compiler that forgives nothing and the sanitizers have to say, beside `make test`:
#
#   scripts/check.sh VENV [GATE...]
#
#   lint   scripts/lint.sh without clang-tidy, which takes minutes more
#   ci     everything compiled with warnings as errors, every header by itself; all C++ tests
#   asan   the C++ tests of the rooms below, under AddressSanitizer and UBSan
#   tsan   the same, under ThreadSanitizer
#
# tsan:remote is that room alone. Without a gate all of them; they all run even when one fails. Exit
# status 1 when one did.
set -uo pipefail
venv=$1
shift
[ $# -gt 0 ] || set -- lint ci asan tsan
# All: what they read comes from other processes and from files.
sanitized=(base model analyze store write print trace pyabi native cli remote signal gpu launch)
status=0

# build_and_test PRESET [ROOM...]: without a room all of them.
build_and_test() {
  local preset=$1
  shift
  local targets=() chosen=()
  if [ $# -gt 0 ]; then
    targets=(--target "${@/%/_test}")
    chosen=(-R "^($(IFS='|' && echo "$*"))\\.")
  fi
  cmake --preset "$preset" \
    -Dpybind11_DIR="$("$venv/bin/python" -m pybind11 --cmakedir)" >/dev/null &&
    cmake --build --preset "$preset" "${targets[@]}" -- --quiet &&
    ctest --preset "$preset" --parallel "$(nproc)" "${chosen[@]}" |
    grep -vE '^ *Start +[0-9]+:| Passed +[0-9.]+ sec$'  # not a line for each of the good ones
}

for gate in "$@"; do
  start=$SECONDS
  echo "check: $gate, minutes if there is much to compile"
  case $gate in
    lint) LINT_TIDY=0 scripts/lint.sh "$venv" ;;
    ci) build_and_test ci ;;
    asan | tsan) build_and_test "$gate" "${sanitized[@]}" ;;
    asan:* | tsan:*) build_and_test "${gate%%:*}" "${gate#*:}" ;;
    *) echo "check: there is no gate $gate" >&2 && false ;;
  esac
  result=$?
  [ $result = 0 ] || status=1
  echo "check: $gate $([ $result = 0 ] && echo passed || echo FAILED) in $((SECONDS - start)) s"
done
exit $status
