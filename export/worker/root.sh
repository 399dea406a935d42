#!/usr/bin/env bash
# Gathers in the folder DIR, which is not there yet, all that a worker needs: miplc,
# the onnxruntime library, and the libraries of glibc and libstdc++ that the two are
# linked with. DIR is then the root of an image without shell, packages or network.
#
#   bash export/worker/root.sh DIR      with Go, a C compiler and pip or npm
set -euo pipefail
[ $# = 1 ] && [ ! -e "$1" ] || { sed -n '2,6s/^# *//p' "$0" >&2; exit 2; }
mkdir -p "$1"
root=$(realpath "$1")
cd "$(dirname "$0")/../.."

mkdir -p "$root"/{usr/bin,usr/lib,etc,experiment,tmp,proc}
chmod 1777 "$root/tmp"
echo 'miplc:x:65532:65532::/experiment:/sbin/nologin' >"$root/etc/passwd"
echo 'miplc:x:65532:' >"$root/etc/group"
: >"$root/etc/ld.so.conf" # the search for plugins of XLA reads it

go build -trimpath -ldflags='-s -w' -o "$root/usr/bin/miplc" ./cmd/miplc
MIPLC_CACHE=$(mktemp -d)
export MIPLC_CACHE
trap 'rm -rf "$MIPLC_CACHE"' EXIT
"$root/usr/bin/miplc" runtime install >&2 # checks its SHA-256
library=$(find "$MIPLC_CACHE" -name 'libonnxruntime.so*' -type f)
install -m 0755 "$library" "$root/usr/lib/" # miplc searches the folder lib next to bin

# Each library at the path at which the dynamic linker looks for it.
ldd "$root/usr/bin/miplc" "$library" | grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r file; do
  case $file in "$root"* | "$MIPLC_CACHE"*) continue ;; esac
  install -D -m 0755 "$(realpath "$file")" "$root$file"
done
du -sh "$root" >&2
