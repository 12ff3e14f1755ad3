#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Puts interpreters that this machine lacks where the tests find them:
#
#   tests/interpreters/fetch.sh [NAME...]      default: sid and 3.13t
#
#   sid     a Debian sid root with python3.14, python3.15 and their headers (about a minute)
#   3.13t   CPython 3.13 of Debian trixie, free-threaded, built here (minutes)
#   3.14t   CPython 3.14 of Debian sid, free-threaded, built here (minutes)
#   3.15t   CPython 3.15 of Debian sid, free-threaded, built here (minutes)
#
# The last two only on request: sid's sources move, and a mirror that is behind has lost them.
# Into ${PYSTROBE_INTERPRETERS:-~/.cache/pystrobe/interpreters}. What is complete is left alone, so
# that a run cut short is simply repeated. Packages come from the Debian mirror that this machine's
# own apt uses, or from PYSTROBE_DEBIAN_MIRROR. Needs root (or sudo) for debootstrap and packages.
set -euo pipefail

destination=${PYSTROBE_INTERPRETERS:-$HOME/.cache/pystrobe/interpreters}
jobs=${PYSTROBE_JOBS:-$(nproc)}

say() { echo "interpreters: $*" >&2; }
die() { say "$*"; exit 1; }
# Runs a command quietly; shows the end of what it said when it fails.
quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    die "failed: $1 (all of it: $log)"
  fi
}
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

mirror() {
  local found=${PYSTROBE_DEBIAN_MIRROR:-}
  if [ -z "$found" ] && command -v apt-get >/dev/null; then
    # Security and third-party archives have other suites or no "/debian" tree.
    found=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' \
      'Created-By: Packages' | awk '$1 ~ /\/debian\/?$/ { print $1; exit }')
  fi
  [ -n "$found" ] || die "no Debian mirror among this machine's apt sources; set PYSTROBE_DEBIAN_MIRROR"
  echo "${found%/}"
}

# need COMMAND=PACKAGE ...: installs the packages whose command (or file) is missing.
need() {
  local missing=() pair what
  for pair in "$@"; do
    what=${pair%%=*}
    command -v "$what" >/dev/null || [ -e "$what" ] || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "please install: ${missing[*]}"
  say "installing ${missing[*]}"
  quietly "$destination/apt.log" as_root env DEBIAN_FRONTEND=noninteractive \
    bash -c 'apt-get -q update && apt-get -qy install --no-install-recommends "$@"' - "${missing[@]}"
}

fetch_sid() {
  [ ! -x "$destination/sid/usr/bin/python3.15" ] || return 0
  need debootstrap=debootstrap /usr/share/keyrings/debian-archive-keyring.gpg=debian-archive-keyring
  say "sid: debootstrap"
  as_root rm -rf "$destination/sid.partial"
  quietly "$destination/sid.log" as_root debootstrap --variant=minbase \
    --include=python3.14,python3.15,python3.14-dev,python3.15-dev \
    sid "$destination/sid.partial" "$(mirror)"
  # An archive mirror may serve a Release file that is past its date.
  echo 'Acquire::Check-Valid-Until "false";' |
    as_root tee "$destination/sid.partial/etc/apt/apt.conf.d/90valid" >/dev/null
  as_root mv "$destination/sid.partial" "$destination/sid"
  say "sid: ready"
}

# fetch_source SUITE PACKAGE DIRECTORY: a Debian source package, unpacked, by an apt of its own that
# knows nothing of this machine's sources.
fetch_source() {
  local suite=$1 package=$2 directory=$3
  local apt=$directory/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $suite main" \
    >"$apt/sources.list"
  local options=(-q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/parts"
    -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=
    -o Acquire::Check-Valid-Until=false)
  quietly "$directory/update.log" apt-get "${options[@]}" update
  (cd "$directory" && quietly "$directory/source.log" \
    apt-get "${options[@]}" --only-source source "$package")
}

# fetch_free_threaded VERSION SUITE
fetch_free_threaded() {
  local version=$1 suite=$2
  local prefix=$destination/${version}t work=$destination/${version}t.partial
  [ ! -x "$prefix/bin/python${version}t" ] || return 0
  need dpkg-source=dpkg-dev cc=gcc make=make xz=xz-utils /usr/include/zlib.h=zlib1g-dev \
    /usr/include/bzlib.h=libbz2-dev /usr/include/lzma.h=liblzma-dev \
    /usr/include/openssl/ssl.h=libssl-dev "/usr/include/$(cc_triplet)/ffi.h=libffi-dev" \
    /usr/share/keyrings/debian-archive-keyring.gpg=debian-archive-keyring
  local tree
  mkdir -p "$work"
  tree=$(find_tree "$work" "$version")
  if [ -z "$tree" ]; then
    say "${version}t: source"
    rm -rf "$work"
    mkdir -p "$work"
    fetch_source "$suite" "python$version" "$work"
    tree=$(find_tree "$work" "$version")
    [ -n "$tree" ] || die "no source tree in $work"
  fi
  say "${version}t: configure and build (log: $work/build.log)"
  (
    cd "$tree"
    [ -f Makefile ] || quietly "$work/configure.log" ./configure --prefix="$prefix" --disable-gil \
      --disable-test-modules --without-ensurepip CFLAGS="-g1 -O2"
    quietly "$work/build.log" make -s -j"$jobs"
    quietly "$work/install.log" make -s altinstall
  )
  rm -rf "$work"
  say "${version}t: ready"
}
find_tree() { find "$1" -maxdepth 1 -type d -iname "python*$2*" | head -n 1; }
cc_triplet() { cc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu; }

mkdir -p "$destination"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(sid 3.13t)
for name in "${names[@]}"; do
  case $name in sid | 3.13t | 3.14t | 3.15t) ;; *) die "no such interpreter: $name" ;; esac
  # One at a time per name, however many callers there are.
  exec 9>"$destination/.$name.lock"
  flock 9
  case $name in
    sid) fetch_sid ;;
    3.13t) fetch_free_threaded 3.13 trixie ;;
    *t) fetch_free_threaded "${name%t}" sid ;;
  esac
done
