"""The shards of a planned experiment as tasks of Ray, and the report:

    python shards.py /shared/smoke
"""

import json
import subprocess
import sys

import ray

folder = sys.argv[1]
shards = len(json.load(open(f"{folder}/shards.json"))["shards"])


@ray.remote(num_cpus=1, max_retries=3, retry_exceptions=True)
def shard(i):
    subprocess.run(["miplc", "experiment", "-o", folder, "--shard", f"{i}/{shards}", "--jobs", "1"], check=True)


ray.init()
ray.get([shard.remote(i) for i in range(1, shards + 1)])
subprocess.run(["miplc", "report", folder], check=True)
