#!/usr/bin/env bash
# Measures a command that trains many runs: with the engine native on one core and on all cores,
# with the engine xla on the CPU, and with it on a GPU.
#
#   bash bench/jobs.sh OUT
#
# prints one line per measurement and appends it to OUT/jobs.tsv. The columns are: case, runs,
# how; wall and processor time of one epoch of one run in milliseconds; wall and processor time
# of the rest of the command (start, compiling, export and checks) in seconds; largest resident
# memory of the second start in MB, if there is a python3; load of the machine. The times come from
# two starts with different numbers of epochs. Checkpoints are disabled, because one takes as long
# as a short epoch. Environment variables:
#
#   MIPLC=miplc       the command; MIPLC_DATA is the folder of the datasets
#   CASES="quickstart birdsong cnn"
#   JOBS="1 8 40 200" CNN_JOBS="1 8"
#   HOW="one-by-one side-by-side xla"   also xla-cuda: engine and device
#   MORE=             additional epochs of the second start; empty: depends on the case
set -eu
: "${MIPLC:=miplc}" "${MIPLC_DATA:?set it to the folder of the datasets}" "${CASES:=quickstart birdsong cnn}"
: "${JOBS:=1 8 40 200}" "${CNN_JOBS:=1 8}" "${HOW:=one-by-one side-by-side xla}" "${MORE:=}"
out=${1:?name a folder for the results}
mkdir -p "$out"

# measured COMMAND... writes the output of the command to OUT/log and prints wall and processor
# seconds and the largest resident memory in MB.
measured() {
  if command -v python3 >/dev/null; then
    python3 - "$out/log" "$@" <<'END'
import resource, subprocess, sys, time
began = time.time()
subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "w"), stderr=subprocess.STDOUT).check_returncode()
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.time() - began, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)
END
  else
    TIMEFORMAT='%R %U %S'
    { time "$@" >"$out/log" 2>&1; } 2>&1 | awk '{print $1, $2 + $3, "-"}'
  fi
}

# started HOW SPEC RUNS EPOCHS OPTIONS... measures a training.
started() {
  local how=$1 spec=$2 runs=$3 epochs=$4 engine=native device=cpu
  shift 4
  case $how in
  xla) engine=xla ;;
  one-by-one) local -x GOMAXPROCS=1 ;;
  side-by-side) ;;
  *-*) engine=${how%-*} device=${how#*-} ;;
  esac
  measured "$MIPLC" train "$spec" -o "$out/run" --force --engine "$engine" --device "$device" --seeds "$(seq -s, 1 "$runs")" \
    --set "train.epochs=$epochs" --set train.eval_every=1000 --set train.checkpoint=0 "$@"
}

# compared CASE SPEC FEWER MORE OPTIONS... does it for all numbers of runs.
compared() {
  local case=$1 spec=$2 fewer=$3 more=$4 runs how a b
  shift 4
  [ -z "$MORE" ] || more=$((fewer + MORE))
  for runs in $jobs; do
    for how in $HOW; do
      a=$(started "$how" "$spec" "$runs" "$fewer" "$@")
      b=$(started "$how" "$spec" "$runs" "$more" "$@")
      echo "$case $runs $how $fewer $more $a $b $(cut -d' ' -f1 /proc/loadavg)" | awk '{
        epochs = $5 - $4
        wall = ($9 - $6) / epochs; cpu = ($10 - $7) / epochs
        memory = $11 == "-" ? $11 : sprintf("%.0f", $11)
        printf "%s\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%s\n", $1, $2, $3, 1000 * wall / $2, 1000 * cpu / $2, $6 - $4 * wall, $7 - $4 * cpu, memory, $12
      }' | tee -a "$out/jobs.tsv"
    done
  done
}

for case in $CASES; do
  jobs=$JOBS
  case $case in
  quickstart) compared quickstart quickstart 1 21 ;;
  birdsong)
    [ -e "$out/birdsong.npz" ] || "$MIPLC" data synth birdsong-mipl --source "$MIPLC_DATA" -o "$out/birdsong.npz"
    compared birdsong demipl 1 4 --set "data.set=$out/birdsong.npz"
    ;;
  cnn)
    jobs=$CNN_JOBS
    [ -e "$out/mnist.npz" ] || "$MIPLC" data synth mnist-mipl --bags 40 --source "$MIPLC_DATA" -o "$out/mnist.npz"
    compared cnn demipl-program 1 2 --set "data.set=$out/mnist.npz"
    ;;
  esac
done
