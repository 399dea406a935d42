#!/usr/bin/env bash
# Measures many runs of one command: by engine ort on one core and on all cores, and by
# engine xla on the CPU. Without checkpoints, which cost as much as a short epoch:
#
#   bash bench/jobs.sh OUT
#
# prints, and keeps in OUT/jobs.tsv: case, runs, how, then of one epoch of one run the
# wall and processor milliseconds, then the same in seconds of everything else in the
# command (start, compiling, export and checks), then the load of the machine. Both
# follow from two starts that differ in the number of epochs. Settings, by environment:
#
#   MIPLC=miplc       the command; MIPLC_DATA names the folder of the data sets
#   CASES="quickstart birdsong cnn"
#   JOBS="1 8 40 200" CNN_JOBS="1 8"
#   HOW="one-by-one side-by-side xla"
set -eu
: "${MIPLC:=miplc}" "${MIPLC_DATA:?names the folder of the data sets}" "${CASES:=quickstart birdsong cnn}"
: "${JOBS:=1 8 40 200}" "${CNN_JOBS:=1 8}" "${HOW:=one-by-one side-by-side xla}"
out=${1:?name a folder for the results}
mkdir -p "$out"

# started HOW SPEC RUNS EPOCHS OPTIONS... prints wall and processor seconds.
started() {
  local how=$1 spec=$2 runs=$3 epochs=$4 engine=ort
  shift 4
  [ "$how" != xla ] || engine=xla
  [ "$how" != one-by-one ] || local -x GOMAXPROCS=1
  TIMEFORMAT='%R %U %S'
  { time "$MIPLC" train "$spec" -o "$out/run" --force --engine $engine --device cpu --seeds "$(seq -s, 1 "$runs")" \
    --set "train.epochs=$epochs" --set train.eval_every=1000 --set train.checkpoint=0 "$@" >"$out/log" 2>&1; } 2>&1 | awk '{print $1, $2 + $3}'
}

# compared CASE SPEC FEWER MORE OPTIONS... does it for all numbers of runs.
compared() {
  local case=$1 spec=$2 fewer=$3 more=$4 runs how a b
  shift 4
  for runs in $jobs; do
    for how in $HOW; do
      a=$(started "$how" "$spec" "$runs" "$fewer" "$@")
      b=$(started "$how" "$spec" "$runs" "$more" "$@")
      echo "$case $runs $how $fewer $more $a $b $(cut -d' ' -f1 /proc/loadavg)" | awk '{
        epochs = $5 - $4
        wall = ($8 - $6) / epochs; cpu = ($9 - $7) / epochs
        printf "%s\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\n", $1, $2, $3, 1000 * wall / $2, 1000 * cpu / $2, $6 - $4 * wall, $7 - $4 * cpu, $10
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
