#!/usr/bin/env bash
# Shows that the root of root.sh is enough: plans the experiment smoke, computes its
# shards in that root, as an ordinary user without network, and compares the report
# with that of one process on this machine. Needs root and Linux.
#
#   bash export/worker/check.sh
set -euo pipefail
[ "$(id -u)" = 0 ] && [ "$(uname)" = Linux ] || { echo "NOT RUN: this needs root and Linux"; exit 77; }
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
bash export/worker/root.sh "$root"
miplc=$root/usr/bin/miplc
shards=4

"$miplc" experiment plan smoke -o "$root/experiment/smoke" --shards $shards
chown -R 65532:65532 "$root/experiment"
chroot=$(command -v chroot)
inside() {
  unshare --net --mount --pid --ipc --uts --fork --mount-proc="$root/proc" env -i HOME=/experiment \
    "$chroot" --userspec=65532:65532 "$root" /usr/bin/miplc "$@"
}
for i in $(seq $shards); do
  inside experiment -o /experiment/smoke --shard "$i/$shards" 2>"$folder/log" || { cat "$folder/log"; exit 1; }
done
inside report /experiment/smoke

"$miplc" experiment smoke -o "$folder/one" 2>"$folder/log" || { cat "$folder/log"; exit 1; }
"$miplc" report "$folder/one"
diff -r "$root/experiment/smoke/report" "$folder/one/report"
echo "passed: the reports are the same byte for byte"
