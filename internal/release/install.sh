#!/bin/sh
# Installs miplc from the files of a release, whose SHA-256 sums it checks.
#
#   sh install.sh [--from ADDRESS] [--to FOLDER]
#
# ADDRESS is the web address or the folder of a release. FOLDER is the folder of the program.
set -eu

fail() {
  echo "error: $1" >&2
  exit 1
}

# download NAME FILE fetches a file of the release.
download() {
  case $from in
  http://* | https://*)
    if command -v curl >/dev/null; then
      curl --fail --silent --show-error --location --retry 3 -o "$2" "$from/$1"
    elif command -v wget >/dev/null; then
      wget -q -O "$2" "$from/$1"
    else
      fail "neither curl nor wget is installed"
    fi || fail "$from/$1 cannot be downloaded"
    ;;
  *) cp "$from/$1" "$2" || fail "there is no $from/$1" ;;
  esac
}

# glibc succeeds on a system with glibc 2.28 or later, which the program with onnxruntime needs.
glibc() {
  for loader in /lib/ld-linux-* /lib64/ld-linux-*; do
    [ -e "$loader" ] || continue
    version=$(getconf GNU_LIBC_VERSION 2>/dev/null) || return 0
    version=${version#glibc 2.}
    [ "${version%%.*}" -ge 28 ]
    return
  done
  return 1
}

# kind prints the platform in the names of the files.
kind() {
  case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) fail "there is no program for $(uname -s); on Windows, unpack miplc-@VERSION@-windows-amd64.tar.gz" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) processor=amd64 ;;
  aarch64 | arm64) processor=arm64 ;;
  *) fail "there is no program for processors $(uname -m); build miplc from source" ;;
  esac
  note=
  if [ "$system" = darwin ]; then
    note=-pure
  elif ! glibc; then
    echo "This system lacks glibc 2.28: installing the program without C libraries, which predicts more slowly." >&2
    note=-pure
  fi
  echo "$system-$processor$note"
}

main() {
  from=@BASE@
  to=
  while [ $# -gt 0 ]; do
    case $1 in
    --from | --to) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown argument $1; usage: sh install.sh [--from ADDRESS] [--to FOLDER]" ;;
    esac
    case $1 in
    --from) from=$2 ;;
    --to) to=$2 ;;
    esac
    shift 2
  done
  if [ -z "$to" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set: name the folder of the program, such as --to /usr/local/bin"
    to=$HOME/.local/bin
  fi
  name=miplc-@VERSION@-$(kind)
  mkdir -p "$to" || fail "name another folder with --to"
  [ -w "$to" ] || fail "$to cannot be written: name another folder with --to"
  work=$(mktemp -d) || fail "there is no folder for temporary files: set TMPDIR"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  download SHA256SUMS "$work/SHA256SUMS"
  download "$name.tar.gz" "$work/$name.tar.gz"
  (
    cd "$work"
    grep "  $name.tar.gz\$" SHA256SUMS >sum || fail "$from/SHA256SUMS does not list $name.tar.gz"
    if command -v sha256sum >/dev/null; then
      sha256sum -c sum >/dev/null
    else
      shasum -a 256 -c sum >/dev/null
    fi || fail "$name.tar.gz is damaged or was changed: its SHA-256 differs from that in SHA256SUMS"
    tar -xzf "$name.tar.gz"
  )
  chmod 755 "$work/$name/miplc"
  # The rename makes the program appear whole, also if an older one is running.
  cp "$work/$name/miplc" "$to/.miplc-new"
  mv "$to/.miplc-new" "$to/miplc"
  echo "$to/miplc: $("$to/miplc" version)"
  case :${PATH:-}: in
  *":$to:"*) ;;
  *) echo "Add $to to your PATH: export PATH=\"$to:\$PATH\"" ;;
  esac
}

# The last line calls the program, so that nothing runs if the download was cut short.
main "$@"
