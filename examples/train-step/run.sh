#!/usr/bin/env bash
# Trains the same ten steps three times, in miplc, in Python and in a browser,
# and compares the losses. Needs Go, Python 3 with numpy and onnxruntime, npm and
# Chromium.
#
#   bash run.sh [SPEC [miplc build flags...]]
#
# MIPLC_PYTHON and MIPLC_BROWSER replace python3 and chromium.
set -euo pipefail
cd "$(dirname "$0")"
python=${MIPLC_PYTHON:-python3}
browser=${MIPLC_BROWSER:-chromium}
tolerance=1e-5
spec=${1:-quickstart}
[ $# -gt 0 ] && shift

"$python" -c 'import numpy, onnxruntime' || {
  echo "$python lacks numpy or onnxruntime: pip install numpy onnxruntime, or set MIPLC_PYTHON to another Python" >&2
  exit 1
}
command -v "$browser" >/dev/null || {
  echo "$browser is not installed: install Chromium, or set MIPLC_BROWSER to another browser" >&2
  exit 1
}
[ -d ../node_modules/onnxruntime-web ] || npm ci --prefix .. --no-fund --no-audit --silent

go run ../../cmd/miplc build "$spec" -o build --sample-steps 10 "$@" >build.log
mv build.log build/miplc.log
"$python" train.py build >build/python.log
"$python" ../serve.py "$browser" "train-step/index.html?build=build&report" >build/browser.log || { cat build/browser.log >&2; exit 1; }
"$python" compare.py "$tolerance" build/miplc.log build/python.log build/browser.log
