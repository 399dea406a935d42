#!/usr/bin/env bash
# Trains on the GPU of a machine that has neither network nor Go.
#
#   bash bench/gpu.sh pack FILE   where Go and the data sets (MIPLC_DATA) are: builds
#                                 what the other machine needs, an archive below 64 MB
#   bash bench/gpu.sh run FILE    on the other machine, in a copy of the working tree
#
# run opens the device, runs the tests of the engine xla on it, trains many splits of
# MNIST-MIPL and of Birdsong-MIPL in one program each, and PyTorch beside them where
# PYTHON has it. What comes out stands in bench/results. Settings, by environment:
#
#   DEVICE=cuda     cpu takes the plugin of XLA for CPUs
#   SPLITS=10 EPOCHS=100             of MNIST-MIPL
#   RUNS=40 RUN_EPOCHS=100           of Birdsong-MIPL
#   ITERATIONS=100  of Gaussian processes on Birdsong-MIPL
#   PEAK=0          GFLOP/s that the device can do in float32, to print the share
#   TESTS=all       which tests of the engine, a regular expression
#   PYTHON=python3  with numpy and PyTorch, if there is one
set -eu
cd "$(dirname "$0")/.."
: "${DEVICE:=cuda}" "${SPLITS:=10}" "${EPOCHS:=100}" "${RUNS:=40}" "${RUN_EPOCHS:=100}" "${ITERATIONS:=100}" "${PEAK:=0}" "${TESTS:=all}" "${PYTHON:=python3}"
packages="compile/xla train/xla train/crosscheck"
folder=$(mktemp -d)
trap 'rm -rf "$folder"; [ -z "${watch:-}" ] || kill "$watch"' EXIT

pack() {
  go build -ldflags='-s -w' -o "$folder/miplc" ./cmd/miplc
  for p in $packages; do
    go test -c -ldflags='-s -w' -o "$folder/${p//\//-}.test" "./$p"
  done
  "$folder/miplc" data synth mnist-mipl --source "${MIPLC_DATA:?names the folder of the data sets}" -o "$folder/mnist.npz"
  "$folder/miplc" data synth birdsong-mipl --source "$MIPLC_DATA" -o "$folder/birdsong.npz"
  cp "$("$folder/miplc" runtime path)" "$folder/libonnxruntime.so"
  XZ_OPT='-2 -T0' tar -C "$folder" -cJf "$1" .
  ls -l "$1"
  [ "$(stat -c %s "$1")" -lt $((64 << 20)) ] || { echo "$1 is too large to travel"; return 1; }
}

# splits N lists 1 to N for --grid.
splits() { seq -s, 1 "$1"; }

# trained SPEC SET N EPOCHS trains N splits in one program and prints what came out.
trained() {
  "$folder/miplc" train "$1" -o "$folder/$2" --engine xla --device "$DEVICE" --grid "data.split.seed=$(splits "$3")" \
    --set "data.set=$folder/$2.npz" --set "train.epochs=$4" --set "train.eval_every=$4" | tail -n 1 | sed "s#, in $folder[^;]*##"
}

# fitted NAME FLAGS... fits Gaussian processes to Birdsong-MIPL and prints what came out.
fitted() {
  "$folder/miplc" train miplgp -o "$folder/$1" "${@:2}" --set "data.set=$folder/birdsong.npz" --set "learner.iterations=$ITERATIONS" |
    sed -n 's/^learner  *//p; s/^test accuracy  */test accuracy /p' | paste -sd ';' | sed 's/;/; /g'
}

# beside SPEC SET N EPOCHS does the same beside PyTorch, where that is.
beside() {
  "$PYTHON" bench/protocol.py --miplc "$folder/miplc" --torch "$PYTHON" --device "$DEVICE" --spec "$1" --data "$folder/$2.npz" \
    --splits "$3" --epochs "$4" --torch-splits 2 --peak "$PEAK"
}

# tested EXECUTOR runs the tests of the engine, as MIPLC_TEST_XLA names it.
tested() {
  local p pattern=$TESTS
  [ "$pattern" != all ] || pattern=.
  for p in $packages; do
    (cd "$p" && MIPLC_TEST_XLA=$1 "$folder/${p//\//-}.test" -test.short -test.run "$pattern" -test.v 2>&1) |
      grep -E '^(--- |PASS|FAIL)|xla +map|differs' || true
  done
}

measured() {
  echo "# The engine xla on $DEVICE"
  echo
  echo "\`$("$folder/miplc" version)\`, $(date -u +%F), $(uname -m), $(nproc) cores."
  echo
  echo '```'
  grep -E '^(miplc|Go|xla on)' "$folder/doctor"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || true
  echo '```'
  printf '\n## Tests, in full float32\n\n```\n'
  tested "$executor"
  printf '```\n'
  if [ "$DEVICE" = cuda ]; then
    printf '\n## The same steps with TF32, for measure\n\n```\n'
    TESTS=TwentySteps tested cuda-tf32
    printf '```\n'
  fi
  printf '\n## Whole protocols\n\n'
  echo "- MNIST-MIPL, $SPLITS splits, $EPOCHS epochs, one program: $(trained demipl-program mnist "$SPLITS" "$EPOCHS")"
  echo "- Birdsong-MIPL, $RUNS splits, $RUN_EPOCHS epochs, one program: $(trained bench/program-features.yaml birdsong "$RUNS" "$RUN_EPOCHS")"
  echo "- Birdsong-MIPL, one split: $(fitted gp-xla --engine xla --device "$DEVICE")"
  echo "- the same by onnxruntime on the CPU: $(fitted gp-ort --engine ort --device cpu)"
  [ ! -s "$folder/memory" ] || echo "- largest memory of the GPU: $(sort -n "$folder/memory" | tail -n 1) MiB"
  if "$PYTHON" -c 'import numpy, torch' 2>/dev/null; then
    printf '\n```\n'
    beside demipl-program mnist "$SPLITS" "$EPOCHS"
    beside bench/program-features.yaml birdsong "$RUNS" "$RUN_EPOCHS"
    printf '```\n'
  else
    printf '\nNo PyTorch: %s has none.\n' "$PYTHON"
  fi
}

run() {
  tar -C "$folder" -xf "$1"
  export ONNXRUNTIME_SHARED_LIBRARY_PATH=$folder/libonnxruntime.so
  executor=$DEVICE
  [ "$DEVICE" != cpu ] || executor=plugin
  "$folder/miplc" doctor >"$folder/doctor"
  grep "^xla on $DEVICE" "$folder/doctor"
  grep -q "^xla on $DEVICE  *usable" "$folder/doctor" || return 1
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -l 1 >"$folder/memory" 2>/dev/null &
    watch=$!
  fi
  local out
  out=bench/results/$(date -u +%F)-xla-$DEVICE.md
  measured | tee "$folder/result"
  mv "$folder/result" "$out"
  echo "kept in $out"
}

case ${1:-} in
pack | run) "$1" "${2:?name the archive}" ;;
*) sed -n '2,23s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
