#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Sees to it that what the build needs is on this machine:
#
#   scripts/setup.sh [build] [test] [lint] [matrix]
#
# On Debian and its kin missing packages are installed with apt, as root or through sudo; nothing is
# called when nothing is missing. Elsewhere it says what it did not find.
set -euo pipefail

# GROUP  DEBIAN PACKAGE  WHAT PROVES IT IS THERE (a command, or a header)
needs() {
  cat <<'TABLE'
build  g++               c++
build  cmake             cmake
build  ninja-build       ninja
build  git               git
build  ca-certificates   -
build  libfmt-dev        fmt/format.h
build  robin-map-dev     tsl/robin_map.h
build  libprotozero-dev  protozero/pbf_writer.hpp
build  libcli11-dev      CLI/CLI.hpp
build  libelf-dev        libelf.h
build  libdw-dev         elfutils/libdwfl.h
build  zlib1g-dev        zlib.h
build  liblzma-dev       lzma.h
build  libbz2-dev        bzlib.h
build  libzstd-dev       zstd.h
build  python3           python3
build  python3-dev       -
build  python3-venv      -
build  libgtest-dev      gtest/gtest.h
build  libgmock-dev      gmock/gmock.h
test   golang-go         go
test   chromium          chromium
test   chromium-driver   chromedriver
test   strace            strace
test   gdb               gdb
test   valgrind          callgrind_annotate
lint   clang-format-19   clang-format-19
lint   clang-tidy-19     clang-tidy-19
matrix debootstrap       debootstrap
matrix dpkg-dev          dpkg-source
TABLE
}

groups=" ${*:-build} "
selected() {
  needs | while read -r group package proof; do
    case $groups in *" $group "*) echo "$package $proof" ;; esac
  done
}

install_with_apt() {
  local missing=() package
  for package in $(selected | cut -d' ' -f1); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends
    "${missing[@]}")
  local root=()
  if [ "$(id -u)" != 0 ]; then
    local why=
    if ! command -v sudo >/dev/null; then
      why="there is no sudo"
    elif ! sudo true; then
      why="sudo was refused"
    fi
    if [ -n "$why" ]; then
      echo "setup: these packages are missing and $why; as root, please run" >&2
      echo "  apt-get install ${missing[*]}" >&2
      exit 1
    fi
    root=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${root[@]}" apt-get -q update && "${root[@]}" "${install[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed; Debian 12 or later has all of these packages (log: $log)" >&2
    exit 1
  fi
  rm -f "$log"
}

# Without apt nothing is installed for the user: look for each thing and name what is not there.
look_for_all() {
  local missing=() package proof
  while read -r package proof; do
    case $proof in
      -) ;;
      *.h | *.hpp)
        echo "#include <$proof>" | c++ -x c++ -E - >/dev/null 2>&1 ||
          missing+=("the header <$proof> ($package on Debian)")
        ;;
      *) command -v "$proof" >/dev/null || missing+=("$proof ($package on Debian)") ;;
    esac
  done < <(selected)
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "setup: this machine has no apt; please install, with your package manager:" >&2
  printf '  %s\n' "${missing[@]}" >&2
  echo "Static libraries (libdw.a, libelf.a, libz.a, liblzma.a, libbz2.a, libzstd.a) and GCC 12 or later are needed too." >&2
  exit 1
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  install_with_apt
else
  look_for_all
fi
