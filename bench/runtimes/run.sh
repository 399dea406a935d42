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
MIPLC_PYTHON=$dir/venv/bin/python go test -count 1 -timeout 20m -run ForeignRuntimes . -keep "$dir/builds" || failed=1
"$dir/venv/bin/python" table.py "$dir/builds/report.json" ../../docs/runtimes.md
exit "${failed:-0}"
