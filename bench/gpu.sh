#!/usr/bin/env bash
# Measures and tests training on the GPU of a machine without network and without Go.
#
#   bash bench/gpu.sh pack FILE   on a machine with Go and the datasets (MIPLC_DATA): writes
#                                 an archive (less than 64 MB) for the other machine
#   bash bench/gpu.sh run FILE    on the other machine, in a copy of the working tree
#
# run measures every device that miplc doctor lists: the engine ort on CUDA and WebGPU, the
# engine xla, and the CPU, with 1, 16 and 64 runs. With the engine xla it runs the tests of
# CORE, trains many splits of MNIST-MIPL and of Birdsong-MIPL in one program each, also with
# PyTorch and JAX if PYTHON has them, fits Gaussian processes on the GPU and on the CPU, and
# runs the other tests. If a part fails or takes too long, run reports it and starts the next
# one. Results are appended to RESULT as soon as they are measured; a log next to RESULT has
# the whole output. The engine ort needs "miplc runtime install cuda" on that machine for CUDA.
# Environment variables:
#
#   DEVICE=cuda     device of the engine xla; cpu selects the plugin of XLA for CPUs
#   LIMIT=1140      seconds for all parts; each part also has a limit of its own, set below
#   PARTS="devices core mnist birdsong gaussian tf32 rest"   parts in the order in which they run
#   DEVICE_RUNS="1 16 64" DEVICE_CASES="quickstart birdsong cnn" DEVICE_MORE=   for the part
#                   devices: JOBS, CASES and MORE of jobs.sh
#   SPLITS=10 EPOCHS=100             for MNIST-MIPL
#   RUNS=40 RUN_EPOCHS=100           for Birdsong-MIPL
#   PEER_SPLITS=2   splits that PyTorch and JAX train; the time of all splits is estimated from them
#   ITERATIONS=100  iterations of Gaussian processes on Birdsong-MIPL
#   PEAK=           peak GFLOP/s of the device in float32; empty: looked up by its name
#   CORE='TwentySteps|Oracle|JobsMatch|JobsResume|InPlace' TESTS=.   regular expressions:
#                   the tests that run first, and the tests that run at all
#   RESULT=bench/results/DATE-xla-DEVICE.md
#   PYTHON=python3  Python with PyTorch and JAX if these are measured; the plugin for a GPU comes from its JAX
set -u
cd "$(dirname "$0")/.."
: "${DEVICE:=cuda}" "${LIMIT:=1140}" "${PARTS:=devices core mnist birdsong gaussian tf32 rest}" "${SPLITS:=10}" "${EPOCHS:=100}" "${RUNS:=40}"
: "${DEVICE_RUNS:=1 16 64}" "${DEVICE_CASES:=quickstart birdsong cnn}" "${DEVICE_MORE:=}"
: "${RUN_EPOCHS:=100}" "${PEER_SPLITS:=2}" "${ITERATIONS:=100}" "${PEAK:=}" "${TESTS:=.}" "${PYTHON:=python3}"
: "${CORE:=TwentySteps|Oracle|JobsMatch|JobsResume|InPlace}" "${RESULT:=bench/results/$(date -u +%F)-$DEVICE.md}"
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
  "$folder/miplc" data synth mnist-mipl --source "${MIPLC_DATA:?set it to the folder of the datasets}" -o "$folder/mnist.npz"
  "$folder/miplc" data synth birdsong-mipl --source "$MIPLC_DATA" -o "$folder/birdsong.npz"
  cp "$("$folder/miplc" runtime path)" "$folder/libonnxruntime.so"
  cp "$("$folder/miplc" runtime install webgpu)" "$folder/webgpu.so"
  XZ_OPT='-2 -T0' tar -C "$folder" -cJf "$1" .
  ls -l "$1"
  [ "$(stat -c %s "$1")" -lt $((64 << 20)) ] || { echo "$1 is larger than 64 MiB"; return 1; }
}

# limited PERCENT COMMAND... runs a command for at most that share of LIMIT, and no longer
# than is left of it; its errors go into the log.
limited() {
  local most=$((LIMIT * $1 / 100)) left=$((LIMIT - SECONDS)) rc
  shift
  [ "$most" -le "$left" ] || most=$left
  [ "$most" -gt 5 ] || { echo "skipped: the limit of $LIMIT s for all parts is reached"; return; }
  timeout -k 10 "$most" "$@" 2>>"$log"
  rc=$?
  case $rc in
  0) ;;
  124 | 137) echo "stopped after its limit of $most s" ;;
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

# devices measures every usable device, and the CPU.
devices() {
  local how="side-by-side $(sed -n 's/^\(ort\|xla\) on \([a-z]*\)  *usable.*/\1-\2/p' "$folder/doctor" | grep -v -e -cpu -e xla-go | paste -sd ' ')"
  mkdir -p "$folder/jobs"
  ln -sf "$folder/mnist.npz" "$folder/birdsong.npz" "$folder/jobs"
  printf '\n## One epoch of one run on every device\n\n'
  echo "Columns: case, runs, device; wall and processor time of an epoch of one run in milliseconds; wall and"
  printf 'processor time of the rest of the command in seconds; load.\n\n```\n'
  limited 40 env MIPLC="$folder/miplc" MIPLC_DATA="$folder" CASES="$DEVICE_CASES" JOBS="$DEVICE_RUNS" CNN_JOBS=1 MORE="$DEVICE_MORE" \
    HOW="$how" bash bench/jobs.sh "$folder/jobs"
  printf '```\n'
}

core() {
  printf '\n## First tests, in full float32\n\n```\n'
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
  echo "- with XLA: $(fitted gp-xla --engine xla --device "$DEVICE")"
  echo "- with onnxruntime on the CPU: $(fitted gp-ort --engine ort --device cpu)"
}

tf32() {
  printf '\n## Twenty steps with TF32, for comparison\n\n```\n'
  if [ "$DEVICE" = cuda ]; then tested 5 cuda-tf32 TwentySteps; else echo "skipped: a CPU does not have TF32"; fi
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
  echo "# The devices of a machine"
  echo
  echo "\`$("$folder/miplc" version)\`, $(date -u +%F), $(uname -m), $(nproc) cores."
  printf '\n```\n'
  grep -E '^(miplc|Go|xla on|ort on)' "$folder/doctor"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
  printf '```\n'
  for part in $PARTS; do
    if [ "$part" = devices ] || [ -n "$xla" ]; then
      "$part"
    else
      printf '\nskipped: the engine xla has no usable device %s\n' "$DEVICE"
    fi
    printf '\n(%s: at %d s)\n' "$part" $SECONDS
  done
}

run() {
  tar -C "$folder" -xf "$1" || return
  "$folder/miplc" version >/dev/null || { echo "the programs in $1 do not run on this machine: run pack on a machine of the same architecture and system"; return 1; }
  # An installed library may be built with CUDA.
  "$folder/miplc" runtime path >/dev/null 2>&1 || export ONNXRUNTIME_SHARED_LIBRARY_PATH=$folder/libonnxruntime.so
  : "${MIPLC_PROVIDER_WEBGPU:=$folder/webgpu.so}"
  export MIPLC_PROVIDER_WEBGPU
  # Where containers have the driver, and the Python whose JAX has the plugin.
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64
  PATH=$(dirname "$(command -v "$PYTHON")"):$PATH
  local executor=$DEVICE found='^xla on cuda  *usable' xla
  [ "$DEVICE" = cuda ] || { executor=plugin; found='^xla on cpu  *usable.*PJRT'; } # pure Go replaces the plugin
  : >"$log"
  limited 15 "$folder/miplc" doctor >"$folder/doctor"
  grep -E '^(ort|xla) on ' "$folder/doctor"
  xla=$(grep "$found" "$folder/doctor")
  [ -n "$xla" ] || grep -q '^ort on [a-z]*  *usable' "$folder/doctor" || { echo "no device is usable"; return 1; }
  : "${PEAK:=$(peak)}"
  measured | tee "$RESULT"
  echo "wrote $RESULT"
}

case ${1:-} in
pack | run) "$1" "${2:?name the archive}" ;;
*) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" && exit 2 ;;
esac
