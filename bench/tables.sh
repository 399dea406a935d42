#!/usr/bin/env bash
# Runs the experiments paper-attention, paper-momentum and paper-lambda on Birdsong-MIPL with
# several engines in turn and measures their time:
#
#   bash bench/tables.sh OUT
#
# writes the results to OUT/EXPERIMENT-ENGINE, and one line per start to OUT/times.tsv:
# experiment, engine, cells, wall and processor seconds, and the load of the machine before and
# after. Experiments that have a report already are not run again. Environment variables:
#
#   MIPLC=miplc       the command; MIPLC_DATA is the folder of the datasets
#   EPOCHS=100 SPLITS=10
#   EXPERIMENTS="attention momentum lambda"
#   ENGINES="native xla"
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${MIPLC:=miplc}" "${MIPLC_DATA:?set it to the folder of the datasets}" "${EPOCHS:=100}" "${SPLITS:=10}"
: "${EXPERIMENTS:=attention momentum lambda}" "${ENGINES:=native xla}"
out=${1:?name a folder for the results}
mkdir -p "$out"

# epochs EXPERIMENT prints the --set options that shorten its trainings.
epochs() {
  local learner
  for learner in $(grep -o 'name: demipl[a-z-]*' "$here/birdsong/$1.yaml" | cut -d' ' -f2); do
    echo --set "learners.$learner.set.train.epochs=$EPOCHS"
  done
}

# started EXPERIMENT ENGINE runs an experiment and appends its line to times.tsv.
started() {
  local to=$out/$1-$2 before seconds
  [ ! -e "$to/report.md" ] || return 0
  before=$(cut -d' ' -f1 /proc/loadavg)
  # shellcheck disable=SC2046 # options, one word each
  { TIMEFORMAT='%R %U %S'; time "$MIPLC" experiment "$here/birdsong/$1.yaml" -o "$to" --data-dir "$MIPLC_DATA" --splits "$SPLITS" \
    --engine "$2" --device cpu $(epochs "$1") 2>"$to.log"; } 2>"$to.time"
  seconds=$(awk '{printf "%.1f\t%.1f", $1, $2 + $3}' "$to.time")
  "$MIPLC" report "$to" >"$to.txt"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$(cat "$to"/results/*.jsonl | wc -l)" "$seconds" "$before" "$(cut -d' ' -f1 /proc/loadavg)" | tee -a "$out/times.tsv"
}

for experiment in $EXPERIMENTS; do
  for engine in $ENGINES; do
    started "$experiment" "$engine"
  done
done
