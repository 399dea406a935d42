#!/usr/bin/env bash
# Computes a small experiment with each front end whose program is installed, and
# compares its report with that of one process. MIPLC_PYTHON names one with ray and optuna.
#
#   bash examples/frontends/try.sh
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
: "${MIPLC_PYTHON:=python3}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/bin/miplc" ../../cmd/miplc
PATH=$folder/bin:$PATH
cd "$folder"
cat >small.yaml <<'END'
name: small
data:
  - {name: P, synth: {set: prototypes, bags: 40, features: 8, min_size: 2, max_size: 4}, r: [1, 2]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 10}, grid: {train.lr: [0.01, 0.05]}}
  - {name: proden, spec: proden-mean, set: {train.epochs: 10}}
splits: {count: 3}
END
miplc experiment small.yaml -o one 2>log
miplc report one >>log

# try NAME COMMAND... runs a front end on the folder NAME.
try() {
  miplc experiment plan small.yaml -o "$1" --shards 4 >log
  "${@:2}" >log 2>&1 || { tail -n 20 log; echo "$1: FAILED"; exit 1; }
  miplc report "$1" >log
  diff -r one/report "$1/report" && echo "$1: the report of one process, byte for byte"
}

has() { command -v "$1" >log || { echo "$1: NOT TRIED, it is not installed"; return 1; }; }
imports() { "$MIPLC_PYTHON" -c "import $1" 2>log || { echo "$1: NOT TRIED, $MIPLC_PYTHON does not have it"; return 1; }; }

if has parallel; then try parallel parallel -j 2 --retries 3 miplc experiment -o parallel --shard {}/4 --jobs 1 ::: 1 2 3 4; fi
if has snakemake; then try snakemake snakemake -s "$here/Snakefile" --cores 2 --config folder=snakemake; fi
if has nextflow; then try nextflow nextflow run "$here/main.nf" --folder "$folder/nextflow"; fi
if imports ray; then try ray "$MIPLC_PYTHON" "$here/shards.py" "$folder/ray"; fi
if imports optuna; then "$MIPLC_PYTHON" "$here/trials.py" one sqlite:///trials.db 2>log | tail -n 1; fi
