#!/usr/bin/env bash
# Measures what shards cost on a Slurm of four nodes that cluster.sh starts: the start of
# a shard that has nothing to do, and how far cells whose times differ a thousandfold end
# behind the ideal, which is the sum of their seconds on four workers, or the longest.
#
#   bash bench/slurm/makespan.sh
set -euo pipefail
cd "$(dirname "$0")"
bash cluster.sh check
folder=$(mktemp -d)
trap 'bash cluster.sh down "$folder/slurm"; rm -rf "$folder"' EXIT
go build -o "$folder/miplc" ../../cmd/miplc
bash cluster.sh up "$folder/slurm" 4 "${PORT:-17000}"
export SLURM_CONF=$folder/slurm/slurm.conf
cat >"$folder/cells.yaml" <<END
name: cells
data:
  - {name: P, synth: {set: prototypes, bags: 60, features: 8, min_size: 2, max_size: 4}}
learners:
  - {name: demipl, spec: demipl, set: {train.engine: gorgonia}, vary: {train.epochs: [3, 30, 300, 3000]}}
splits: {count: 4}
END
"$folder/miplc" experiment plan "$folder/cells.yaml" -o "$folder/out" --workers 4 --shards "${SHARDS:-8}"
export MIPLC=$folder/miplc MIPLC_SHARDS=${SHARDS:-8}
MIPLC_PLAN=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["id"])' "$folder/out/shards.json")
export MIPLC_PLAN
begun=$(date +%s.%N)
sbatch --wait "--array=0-$((MIPLC_SHARDS - 1))%4" "--output=$folder/%a.out" ../../examples/slurm/experiment.sbatch "$folder/out"
ended=$(date +%s.%N)
cat "$folder"/out/results/*.jsonl | python3 -c '
import json, sys
seconds = [json.loads(line)["seconds"] for line in sys.stdin]
span, ideal = float(sys.argv[2]) - float(sys.argv[1]), max(sum(seconds) / 4, max(seconds))
print(f"{len(seconds)} cells of {min(seconds):.2f} to {max(seconds):.2f} s, {sum(seconds):.1f} s in all")
print(f"makespan {span:.1f} s, ideal {ideal:.1f} s, quotient {span / ideal:.2f}")' "$begun" "$ended"
for _ in 1 2 3 4 5; do
  begun=$(date +%s%N)
  "$folder/miplc" experiment -o "$folder/out" --shard "1/${SHARDS:-8}" >"$folder/log" 2>&1
  echo "start of a shard without cells left: $((($(date +%s%N) - begun) / 1000000)) ms"
done
