#!/usr/bin/env bash
# Installs a release in every documented way in empty roots, as root, as a user without HOME and with a read-only
# root, and prints the seconds from the start to the first trained model. Needs root, Linux, debootstrap and
# busybox-static.
#
#   bash internal/release/test-install.sh DIST [ROOTS]
#
# DIST is the output of this program. ROOTS keeps the roots of Debian for later runs.
set -u
if [ $# -lt 1 ] || [ "$(id -u)" != 0 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0"
  exit 2
fi
dist=$(realpath "$1") roots=$(realpath -m "${2:-/var/tmp/miplc-roots}") failed=0
case $(uname -m) in
x86_64) processor=amd64 wheel=x86_64 ;;
*) processor=arm64 wheel=aarch64 ;;
esac
mkdir -p "$roots"
for suite in bookworm trixie; do
  [ -e "$roots/$suite/usr/bin/pip3" ] || debootstrap --variant=minbase --include=ca-certificates,python3-venv,python3-pip \
    "$suite" "$roots/$suite" >"$roots/$suite.log" 2>&1 || { tail "$roots/$suite.log"; exit 1; }
done
# No glibc, like Alpine: a shell and its tools in one static program.
if [ ! -e "$roots/busybox/bin/busybox" ]; then
  mkdir -p "$roots/busybox/bin" "$roots/busybox/etc"
  cp "$(command -v busybox)" "$roots/busybox/bin/busybox"
  for name in $(busybox --list); do [ "$name" = busybox ] || ln -sf busybox "$roots/busybox/bin/$name"; done
  echo root:x:0:0:root:/root:/bin/sh >"$roots/busybox/etc/passwd"
fi

# try SUITE WHO EXPECTED COMMANDS... runs commands in a fresh copy of a root. WHO is root, user (without HOME), or
# readonly (a user without HOME; only /tmp can be written). EXPECTED is the text that the output must contain.
try() {
  local suite=$1 who=$2 expected=$3 root script start seconds verdict=ok
  shift 3
  root=$(mktemp -d)
  cp -a "$roots/$suite/." "$root/"
  mkdir -p "$root/dist" "$root/tmp" "$root/proc" "$root/dev" "$root/root" "$root/etc/ssl"
  chmod 1777 "$root/tmp"
  cp /etc/resolv.conf "$root/etc/"
  script="set -e; cd /tmp; $*"
  start=$(date +%s.%N)
  # The mounts disappear with the namespace.
  # shellcheck disable=SC2016
  unshare --mount --pid --fork bash -c '
    root=$1 dist=$2 who=$3 script=$4
    mount --bind "$root" "$root"
    mount --bind "$dist" "$root/dist"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev"
    for d in null zero urandom; do touch "$root/dev/$d"; mount --bind "/dev/$d" "$root/dev/$d"; done
    [ ! -d /etc/ssl/certs ] || { mkdir -p "$root/etc/ssl/certs"; mount --bind /etc/ssl/certs "$root/etc/ssl/certs"; }
    if [ "$who" = readonly ]; then
      mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
      mount -o remount,bind,ro "$root"
    fi
    settings=$(env | grep -E "^(PIP_INDEX|PIP_CERT|PIP_TRUSTED|SSL_CERT|REQUESTS_CA|https?_proxy|HTTPS?_PROXY)")
    if [ "$who" = root ]; then set -- HOME=/root; else set --; fi
    user=; [ "$who" = root ] || user=--userspec=12345:12345
    mapfile -t settings <<<"$settings"
    exec "$(command -v chroot)" $user "$root" /bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/sbin:/usr/sbin "$@" \
      "${settings[@]:-NOTHING=}" /bin/sh -c "$script"' - "$root" "$dist" "$who" "$script" >"$root.log" 2>&1
  seconds=$(printf '%.0f' "$(echo "$(date +%s.%N) - $start" | bc)")
  grep -qF "$expected" "$root.log" || { verdict=FAILED failed=1; }
  printf '%-9s %-9s %4s s  %-7s %s\n' "$suite" "$who" "$seconds" "$verdict" "$*"
  [ "$verdict" = ok ] || tail -n 15 "$root.log"
  rm -rf "$root" "$root.log"
}

trained='test accuracy      0.9889 of 90 bags'
for suite in bookworm trixie; do
  try $suite root "$trained" "python3 -m venv v; v/bin/pip -q install /dist/miplc-*_$wheel.whl; v/bin/miplc train quickstart -o run"
  try $suite root "$trained" "dpkg -i /dist/miplc_*_$processor.deb; miplc train quickstart -o run"
  try $suite root "$trained" "sh /dist/install.sh --from /dist; ~/.local/bin/miplc train quickstart -o run"
  try $suite user "HOME is not set: name the folder of the program" "sh /dist/install.sh --from /dist"
  try $suite user "$trained" "sh /dist/install.sh --from /dist --to /tmp/bin; MIPLC_CACHE=/tmp/cache bin/miplc train quickstart -o run"
  try $suite user "no cache directory: neither MIPLC_CACHE nor HOME is set" "sh /dist/install.sh --from /dist --to /tmp/bin; bin/miplc train quickstart -o run"
  try $suite readonly "$trained" "sh /dist/install.sh --from /dist --to /tmp/bin; MIPLC_CACHE=/tmp/cache bin/miplc train quickstart -o run"
  try $suite readonly "cannot be written" "sh /dist/install.sh --from /dist --to /usr/local/bin"
done
try busybox root "test accuracy" "sh /dist/install.sh --from /dist; ~/.local/bin/miplc train quickstart -o run"
try busybox user "test accuracy" "sh /dist/install.sh --from /dist --to /tmp/bin; bin/miplc train quickstart -o run"
try busybox readonly "test accuracy" "sh /dist/install.sh --from /dist --to /tmp/bin; bin/miplc train quickstart -o run"
exit $failed
