#!/usr/bin/env bash
# Runs models and training steps of miplc in other runtimes and renews the table of
# docs/runtimes.md. Needs Go, Python 3, clang (tinygrad compiles its kernels) and the
# network for what requirements.txt pins; a folder for all that may be given.
#
#   bash bench/runtimes/run.sh [DIR]
set -euo pipefail
cd "$(dirname "$0")"
dir=$(realpath "${1:-$(mktemp -d)}")
[ -d "$dir/venv" ] || python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet -r requirements.txt
rm -rf "$dir/builds"
mkdir "$dir/builds"
MIPLC_PYTHON=$dir/venv/bin/python go test -count 1 -timeout 20m -run ForeignRuntimes .. -keep "$dir/builds" || failed=1
# The oldest and the newest onnxruntime that this Python has, on the same models.
for version in 1.15.0 1.31.1; do
  other=$dir/onnxruntime-$version
  [ -d "$other" ] || { python3 -m venv "$other" && "$other/bin/pip" install --quiet numpy==1.26.4 "onnxruntime==$version"; }
  "$other/bin/python" foreign.py "$dir/$version.json" "$dir"/builds/*/
done
"$dir/venv/bin/python" table.py "$dir"/builds/report.json "$dir"/1.*.json ../../docs/runtimes.md
exit "${failed:-0}"
