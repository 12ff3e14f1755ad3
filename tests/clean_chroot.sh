#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Does what a stranger does in a fresh Debian 12 root.
#
#   tests/clean_chroot.sh [COMMAND...]        with nothing but git and make, clones the committed state
#                                             of this repository and runs a command in it, by default
#                                             `make demo`
#   tests/clean_chroot.sh --wheel FILE        with nothing but Python and pip, installs the wheel, and
#                                             samples, traces and attaches
#
# KEEP=1 leaves the root behind and says where. The root gets this machine's own apt sources, pip
# configuration and certificates, so that it works behind the same mirrors. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "clean_chroot: needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "clean_chroot: needs debootstrap" >&2; exit 1; }
wheel=
packages=git,make
if [ "${1:-}" = --wheel ]; then
  wheel=$(realpath "$2")
  packages=python3-venv
  set -- bash -e wheel.sh
fi
[ $# -gt 0 ] || set -- make demo

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pystrobe
base=$cache/bookworm-${packages/,/-}.tar
root=$(mktemp -d "${TMPDIR:-/tmp}/pystrobe-clean.XXXXXX")
leave() {
  for place in dev/shm dev/pts proc; do
    if mountpoint -q "$root/$place"; then umount "$root/$place"; fi
  done
  if [ -n "${KEEP:-}" ]; then
    echo "clean_chroot: left in $root" >&2
  else
    rm -rf --one-file-system "$root"
  fi
}
trap leave EXIT

if [ ! -f "$base" ]; then
  mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' \
    'Created-By: Packages' | awk '$1 ~ /\/debian\/?$/ { print $1; exit }')
  mkdir -p "$cache"
  debootstrap --variant=minbase --include="$packages,ca-certificates" bookworm "$root" "${mirror%/}" \
    >"$cache/bookworm.log" 2>&1 || { tail "$cache/bookworm.log" >&2; exit 1; }
  tar -C "$root" -cf "$base.partial" . && mv "$base.partial" "$base"
else
  tar -C "$root" -xf "$base"
fi

rm -f "$root"/etc/apt/sources.list
cp -r /etc/apt/sources.list.d /etc/apt/apt.conf.d "$root/etc/apt/"
[ ! -f /etc/apt/sources.list ] || cp /etc/apt/sources.list "$root/etc/apt/"
for file in /etc/pip.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
chmod 755 "$root"
mkdir -p "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t devpts -o ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -sf pts/ptmx "$root/dev/ptmx"
if [ -z "$wheel" ]; then
  git clone -q --no-hardlinks . "$root/root/pystrobe"
else
  mkdir "$root/root/pystrobe"
  cp "$wheel" "$root/root/pystrobe"
  cat >"$root/root/pystrobe/wheel.sh" <<'END'
python3 -m venv /root/venv
/root/venv/bin/pip install -q ./*.whl
PATH=/root/venv/bin:$PATH
pystrobe --version
python -m pystrobe run -o run.html -q -m compileall -q -f /usr/lib/python3.11/json
pystrobe run --in-process --native -o inside.strobe -q -m compileall -q -f /usr/lib/python3.11/json
pystrobe report inside.strobe --top 3
pystrobe trace -o calls.pstats -q -m compileall -q -f /usr/lib/python3.11/json
python3 -m pstats calls.pstats <<<"stats 1" | grep "function calls"
python -c 'while True: sorted(map(str, range(1000)))' &
pystrobe attach $! -d 1 --top 3
kill $!
ls -l run.html inside.strobe calls.pstats
END
fi

# Node.js has certificates of its own unless told of others.
environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8
  NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt)
env -i "${environment[@]}" chroot "$root" \
  /bin/bash -c 'cd /root/pystrobe && exec "$@"' - "$@"
