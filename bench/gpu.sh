#!/usr/bin/env bash
# Trains on the GPU of a machine that has neither network nor Go.
#
#   bash bench/gpu.sh pack FILE   where Go and the data sets (MIPLC_DATA) are: builds
#                                 what the other machine needs, an archive below 64 MB
#   bash bench/gpu.sh run FILE    on the other machine, in a copy of the working tree
#
# run opens the device, tests a part of the engine xla on it, trains many splits of
# MNIST-MIPL and of Birdsong-MIPL in one program each, PyTorch and JAX beside them where
# PYTHON has them, fits Gaussian processes there and on the CPU, and tests the rest. A
# part that fails or takes too long is told, and the next one comes. What is found stands
# in RESULT at once, all that was printed in a log beside it. Settings, by environment:
#
#   DEVICE=cuda     cpu takes the plugin of XLA for CPUs
#   LIMIT=1140      seconds for all parts; each also has its own, below
#   PARTS="core mnist birdsong gaussian tf32 rest"   which parts, in this order
#   SPLITS=10 EPOCHS=100             of MNIST-MIPL
#   RUNS=40 RUN_EPOCHS=100           of Birdsong-MIPL
#   PEER_SPLITS=2   splits that PyTorch and JAX train, their totals are estimated from them
#   ITERATIONS=100  of Gaussian processes on Birdsong-MIPL
#   PEAK=           GFLOP/s that the device can do in float32; empty: known by its name
#   CORE='TwentySteps|Oracle|JobsMatch|JobsResume|InPlace' TESTS=.   regular expressions:
#                   tests that come first, and what of all tests to take
#   RESULT=bench/results/DATE-xla-DEVICE.md
#   PYTHON=python3  which may have PyTorch and JAX; the plugin of a GPU is that of its JAX
set -u
cd "$(dirname "$0")/.."
: "${DEVICE:=cuda}" "${LIMIT:=1140}" "${PARTS:=core mnist birdsong gaussian tf32 rest}" "${SPLITS:=10}" "${EPOCHS:=100}" "${RUNS:=40}"
: "${RUN_EPOCHS:=100}" "${PEER_SPLITS:=2}" "${ITERATIONS:=100}" "${PEAK:=}" "${TESTS:=.}" "${PYTHON:=python3}"
: "${CORE:=TwentySteps|Oracle|JobsMatch|JobsResume|InPlace}" "${RESULT:=bench/results/$(date -u +%F)-xla-$DEVICE.md}"
packages="compile/xla train/xla train/crosscheck"
RESULT=$(realpath -m "$RESULT")
log=${RESULT%.md}.log
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

pack() {
  set -e
  go build -trimpath -ldflags='-s -w' -o "$folder/miplc" ./cmd/miplc
  for p in $packages; do
    go test -c -trimpath -ldflags='-s -w' -o "$folder/${p//\//-}.test" "./$p"
  done
  "$folder/miplc" data synth mnist-mipl --source "${MIPLC_DATA:?names the folder of the data sets}" -o "$folder/mnist.npz"
  "$folder/miplc" data synth birdsong-mipl --source "$MIPLC_DATA" -o "$folder/birdsong.npz"
  cp "$("$folder/miplc" runtime path)" "$folder/libonnxruntime.so"
  XZ_OPT='-2 -T0' tar -C "$folder" -cJf "$1" .
  ls -l "$1"
  [ "$(stat -c %s "$1")" -lt $((64 << 20)) ] || { echo "$1 is too large to travel"; return 1; }
}

# limited PERCENT COMMAND... runs a command for at most that share of LIMIT, and no longer
# than is left of it; its errors go into the log.
limited() {
  local most=$((LIMIT * $1 / 100)) left=$((LIMIT - SECONDS)) rc
  shift
  [ "$most" -le "$left" ] || most=$left
  [ "$most" -gt 5 ] || { echo "left out: the $LIMIT s of all parts are over"; return; }
  timeout -k 10 "$most" "$@" 2>>"$log"
  rc=$?
  case $rc in
  0) ;;
  124 | 137) echo "ended after $most s" ;;
  *) echo "exit code $rc, see $(basename "$log")" ;;
  esac
}

# protocol SPEC SET N EPOCHS trains N splits in one program, and a few by the peers.
protocol() {
  local peers=$((PEER_SPLITS < $3 ? PEER_SPLITS : $3)) limit=$((LIMIT * 40 / 100)) left=$((LIMIT - SECONDS - 10))
  limited 45 "$PYTHON" bench/protocol.py --miplc "$folder/miplc" --torch "$PYTHON" --jax "$PYTHON" --device "$DEVICE" --spec "$1" \
    --data "$folder/$2.npz" --splits "$3" --epochs "$4" --peer-splits "$peers" --limit $((limit < left ? limit : left)) --peak "${PEAK:-0}"
}

# fitted NAME FLAGS... fits Gaussian processes to Birdsong-MIPL and prints what came out.
fitted() {
  limited 15 "$folder/miplc" train miplgp -o "$folder/$1" "${@:2}" --set "data.set=$folder/birdsong.npz" --set "learner.iterations=$ITERATIONS" |
    sed -n 's/^learner  *//p; s/^test accuracy  */test accuracy /p; /^ended\|^exit\|^left/p' | paste -sd ';' | sed 's/;/; /g'
}

# tested PERCENT EXECUTOR PATTERN [FLAGS...] runs the tests of the engine that match, as
# MIPLC_TEST_XLA names the executor, and prints their verdicts and what they measured.
tested() {
  local p share=$1 executor=$2 pattern=$3
  shift 3
  for p in $packages; do
    (cd "$p" && MIPLC_TEST_XLA=$executor limited "$share" "$folder/${p//\//-}.test" -test.short -test.v -test.run "$pattern" "$@" 2>&1) |
      tee -a "$log" | grep -E '^(--- |PASS|FAIL|panic|ended|exit|left)|xla +map|differs'
  done
}

core() {
  printf '\n## Tests that come first, in full float32\n\n```\n'
  tested 8 "$executor" "$CORE"
  printf '```\n'
}

mnist() {
  printf '\n## MNIST-MIPL\n\n```\n'
  protocol demipl-program mnist "$SPLITS" "$EPOCHS"
  printf '```\n'
}

birdsong() {
  printf '\n## Birdsong-MIPL\n\n```\n'
  protocol bench/program-features.yaml birdsong "$RUNS" "$RUN_EPOCHS"
  printf '```\n'
}

gaussian() {
  printf '\n## Gaussian processes on Birdsong-MIPL, one split\n\n'
  echo "- by XLA: $(fitted gp-xla --engine xla --device "$DEVICE")"
  echo "- by onnxruntime on the CPU: $(fitted gp-ort --engine ort --device cpu)"
}

tf32() {
  printf '\n## Twenty steps with TF32, for measure\n\n```\n'
  if [ "$DEVICE" = cuda ]; then tested 5 cuda-tf32 TwentySteps; else echo "a CPU has none"; fi
  printf '```\n'
}

rest() {
  printf '\n## All other tests, in full float32\n\n```\n'
  tested 100 "$executor" "$TESTS" -test.skip "$CORE"
  printf '```\n'
}

# peak gives the GFLOP/s in float32, without tensor cores, of GPUs by the name of the first.
peak() {
  case $(nvidia-smi -i 0 --query-gpu=name --format=csv,noheader 2>/dev/null) in
  *H100*PCIe*) echo 51200 ;;
  *H100* | *H200*) echo 66900 ;;
  *A100*) echo 19500 ;;
  *L40S*) echo 91600 ;;
  *L4) echo 30300 ;;
  *T4) echo 8100 ;;
  esac
}

measured() {
  local part
  echo "# The engine xla on $DEVICE"
  echo
  echo "\`$("$folder/miplc" version)\`, $(date -u +%F), $(uname -m), $(nproc) cores."
  printf '\n```\n'
  grep -E '^(miplc|Go|xla on)' "$folder/doctor"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
  printf '```\n'
  for part in $PARTS; do
    "$part"
    printf '\n(%s: at %d s)\n' "$part" $SECONDS
  done
}

run() {
  tar -C "$folder" -xf "$1" || return
  "$folder/miplc" version >/dev/null || { echo "the programs of $1 do not run here: pack on a machine like this one"; return 1; }
  export ONNXRUNTIME_SHARED_LIBRARY_PATH=$folder/libonnxruntime.so
  # Where containers have the driver, and the Python whose JAX has the plugin.
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64
  PATH=$(dirname "$(command -v "$PYTHON")"):$PATH
  local executor=$DEVICE found='^xla on cuda  *usable'
  [ "$DEVICE" = cuda ] || { executor=plugin; found='^xla on cpu  *usable.*PJRT'; } # pure Go stands in for a plugin
  : >"$log"
  limited 15 "$folder/miplc" doctor >"$folder/doctor"
  grep "^xla on $DEVICE" "$folder/doctor"
  grep -q "$found" "$folder/doctor" || { echo "the device is not usable"; return 1; }
  : "${PEAK:=$(peak)}"
  measured | tee "$RESULT"
  echo "kept in $RESULT"
}

case ${1:-} in
pack | run) "$1" "${2:?name the archive}" ;;
*) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" && exit 2 ;;
esac
