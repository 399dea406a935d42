"""Compare the latency of miplc serve with other servers, with wrk on loopback; see bench/README.md."""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FEATURES, CLASSES = 20, 5  # of the spec quickstart


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--miplc", required=True, help="the program")
    p.add_argument("--fastapi", help="a Python with fastapi, uvicorn and onnxruntime")
    p.add_argument("--mlserver", help="a Python with mlserver 1.7.1 and onnxruntime")
    p.add_argument("--triton", help="the folder that nvidia-pytriton 0.7.0 was unpacked to")
    p.add_argument("--triton-python", help="a Python 3.11 with numpy and onnxruntime, for Triton's python back end")
    p.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    p.add_argument("--instances", type=int, default=12, help="of the bag")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=int, default=3, help="of one measurement")
    p.add_argument("--out", default=os.path.join(ROOT, "bench", "results"))
    return p.parse_args()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A process that serves until it is ended."""

    def __init__(self, command, port, env=None, cwd=None):
        self.port = port
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(c) for c in command], env={**os.environ, **(env or {})}, cwd=cwd, stdout=self.log, stderr=subprocess.STDOUT)

    def wait(self):
        for _ in range(600):
            try:
                if urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/health/ready", timeout=1).status == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.log.seek(0)
        raise SystemExit("%s\ndid not come up:\n%s" % (self.process.args, self.log.read().decode()[-2000:]))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def miplc(args, folder, *flags):
    port = free_port()
    return Server([args.miplc, "serve", os.path.join(folder, "models"), "--http", f"127.0.0.1:{port}", "--grpc", "", "--lame-duck", "0s", *flags], port)


def fastapi(args, folder):
    port = free_port()
    return Server([args.fastapi, "-m", "uvicorn", "fastapi_app:app", "--port", port, "--log-level", "warning", "--app-dir", HERE], port,
                  {"MODEL": os.path.join(folder, "models", "bag.onnx")})


def mlserver(args, folder):
    port, home = free_port(), os.path.join(folder, "mlserver")
    os.makedirs(home, exist_ok=True)
    shutil.copy(os.path.join(HERE, "mlserver_bag.py"), home)
    with open(os.path.join(home, "settings.json"), "w") as f:
        json.dump({"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "parallel_workers": 0, "debug": False}, f)
    with open(os.path.join(home, "model-settings.json"), "w") as f:
        json.dump({"name": "bag", "implementation": "mlserver_bag.Bag", "parameters": {"uri": os.path.join(folder, "models", "bag.onnx")}}, f)
    return Server([os.path.join(os.path.dirname(args.mlserver), "mlserver"), "start", home], port, {"PYTHONPATH": home}, home)


def triton(args, folder):
    port, home = free_port(), os.path.join(folder, "triton")
    server = os.path.join(os.path.abspath(args.triton), "pytriton", "tritonserver")
    version = os.path.join(home, "bag", "1")
    os.makedirs(version, exist_ok=True)
    shutil.copy(os.path.join(HERE, "triton", "model.py"), version)
    shutil.copy(os.path.join(folder, "models", "bag.onnx"), os.path.join(version, "model.onnx"))
    with open(os.path.join(home, "bag", "config.pbtxt"), "w") as f:
        f.write('name: "bag"\nbackend: "python"\nmax_batch_size: 0\n'
                'input [ { name: "instances" data_type: TYPE_FP32 dims: [ -1, %d ] } ]\n'
                'output [ { name: "probabilities" data_type: TYPE_FP32 dims: [ 1, %d ] }, { name: "attention" data_type: TYPE_FP32 dims: [ 1, -1 ] } ]\n'
                'instance_group [ { count: 2 kind: KIND_CPU } ]\n' % (FEATURES, CLASSES))
    stub = os.path.join(server, "backends", "python", "triton_python_backend_stub")
    if not os.path.exists(stub):
        shutil.copy(os.path.join(server, "python_backend_stubs", "3.11", "triton_python_backend_stub"), stub)
    for program in (stub, os.path.join(server, "bin", "tritonserver")):
        os.chmod(program, 0o755)
    site = subprocess.run([args.triton_python, "-c", "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))"], capture_output=True, text=True, check=True).stdout.strip()
    return Server([os.path.join(server, "bin", "tritonserver"), "--model-repository", home, "--backend-directory", os.path.join(server, "backends"),
                   "--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"], port, {"TRITON_SITE": site})


def requests(folder, instances):
    """Writes the bodies: one bag in JSON and in the binary extension, for both signatures."""
    bag = np.random.default_rng(1).normal(size=(instances, FEATURES)).astype(np.float32)
    tensor = {"name": "instances", "datatype": "FP32", "shape": list(bag.shape)}
    of = {"name": "bag_of", "datatype": "INT64", "shape": [instances]}
    bodies = {}
    for name, extra in (("bag", []), ("batch", [{**of, "data": [0] * instances}])):
        text = json.dumps({"inputs": [{**tensor, "data": bag.ravel().round(4).tolist()}] + extra}).encode()
        bodies[name, "JSON"] = (text, None)
        raw = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [{**tensor, "parameters": {"binary_data_size": bag.nbytes}}] + extra}).encode()
        bodies[name, "binary"] = (raw + bag.tobytes(), len(raw))
    found = {}
    for (name, form), (body, length) in bodies.items():
        path = os.path.join(folder, f"{name}-{form}")
        with open(path, "wb") as f:
            f.write(body)
        found[name, form] = {"BODY": path, "TYPE": "application/octet-stream" if length else "application/json", **({"JSON_LENGTH": str(length)} if length else {})}
    return found


def load(server, model, request, connections, seconds):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", os.path.join(HERE, "load.lua"), f"http://127.0.0.1:{server.port}/v2/models/{model}/infer"]
    done = subprocess.run(command, env={**os.environ, **request}, capture_output=True, text=True, check=True)
    got = json.loads(done.stdout.splitlines()[-1])
    if got["wrong"] or not got["requests"]:
        raise SystemExit(f"{server.process.args}: {got}")
    return got


def cases(args):
    """Name, way to start, model and forms of each server that is there."""
    yield "miplc, signature bag", lambda f: miplc(args, f), "bag", ("JSON", "binary")
    yield "miplc, signature batch, batching off", lambda f: miplc(args, f, "--batch", "1"), "batch", ("JSON", "binary")
    yield "miplc, signature batch, batching on", lambda f: miplc(args, f), "batch", ("JSON", "binary")
    yield "miplc, signature batch, batching on, delay 1 ms", lambda f: miplc(args, f, "--batch-delay", "1ms"), "batch", ("binary",)
    if args.fastapi:
        yield "FastAPI with onnxruntime", lambda f: fastapi(args, f), "bag", ("JSON",)
    if args.mlserver:
        yield "MLServer", lambda f: mlserver(args, f), "bag", ("JSON",)
    if args.triton:
        yield "Triton, python back end", lambda f: triton(args, f), "bag", ("JSON", "binary")


def measure(args, folder):
    request = requests(folder, args.instances)
    found = {}
    for round in range(args.rounds):
        for name, start, model, forms in cases(args):
            server = start(folder)
            try:
                server.wait()
                for form in forms:
                    load(server, model, request[model, form], 16, 1)  # warm
                    for connections in args.connections:
                        got = load(server, model, request[model, form], connections, args.seconds)
                        found.setdefault((form, connections), {}).setdefault(name, []).append(got)
            finally:
                server.end()
        print(f"round {round + 1} of {args.rounds}", file=sys.stderr)
    return found


def table(found):
    lines = []
    for (form, connections), by_name in sorted(found.items(), key=lambda i: (i[0][0], i[0][1])):
        lines += [f"## {form}, {connections} connection{'s' * (connections > 1)}", "", "| server | p50 | p99 | requests a second | p50 times miplc | p99 times miplc |", "|---|---|---|---|---|---|"]
        median = {n: {k: statistics.median(r[k] for r in runs) for k in ("p50", "p99")} | {"rate": statistics.median(r["requests"] / r["seconds"] for r in runs)} for n, runs in by_name.items()}
        first = next(iter(by_name))
        for name, m in median.items():
            ratios = (statistics.median(a[k] / b[k] for a, b in zip(by_name[name], by_name[first])) for k in ("p50", "p99"))
            lines.append("| %s | %.2f | %.2f | %.0f | %.2f | %.2f |" % (name, m["p50"] / 1000, m["p99"] / 1000, m["rate"], *ratios))
        lines.append("")
    return lines


def versions(python, *modules):
    code = "import importlib.metadata as m, sys; print(', '.join(n + ' ' + m.version(n) for n in sys.argv[1:]))"
    return subprocess.run([python, "-c", code, *modules], capture_output=True, text=True).stdout.strip() if python else "left out"


def main():
    args = arguments()
    if args.out:
        os.makedirs(args.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "models"))
        for name in ("bag", "batch"):
            # train installs onnxruntime if it is missing
            subprocess.run([args.miplc, "train", "quickstart", "-o", os.path.join(folder, name), "--set", "train.epochs=3", "--set", f"export.signature={name}"], check=True, stdout=subprocess.DEVNULL)
            shutil.copy(os.path.join(folder, name, "model.onnx"), os.path.join(folder, "models", name + ".onnx"))
        about = {
            "date": datetime.date.today().isoformat(), "cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "system": platform.platform(),
            "load at start": "%.1f" % os.getloadavg()[0], "miplc": subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip(),
            "FastAPI": versions(args.fastapi, "fastapi", "uvicorn", "onnxruntime"), "MLServer": versions(args.mlserver, "mlserver", "onnxruntime"),
            "Triton": "nvidia-pytriton 0.7.0, its python back end, 2 processes, " + versions(args.triton_python, "onnxruntime") if args.triton else "left out",
            "bag": f"{args.instances} instances of {FEATURES} features, model quickstart", "rounds": args.rounds, "seconds": args.seconds,
        }
        found = measure(args, folder)
        about["load at end"], about["priority"] = "%.1f" % os.getloadavg()[0], "nice %d" % os.nice(0)
    text = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read()) if os.path.exists("/proc/cpuinfo") else None
    about["cpu"] = text[1] if text else about["cpu"]
    lines = [f"# Serving, measured {about['date']} on {about['cpu']}", ""] + [f"- {k}: {v}" for k, v in about.items()]
    lines += ["", "Milliseconds from request to answer on loopback, under wrk with one thread, which shares the cores with the server.",
              "Medians over the rounds; the last columns are the medians over the rounds of the quotients within a round.", ""] + table(found)
    print("\n".join(lines))
    if args.out:
        path = os.path.join(args.out, f"{about['date']}-serving")
        with open(path + ".md", "w") as f:
            f.write("\n".join(lines))
        with open(path + ".json", "w") as f:
            json.dump({"about": about, "results": [{"form": k[0], "connections": k[1], "server": n, "rounds": r} for k, v in found.items() for n, r in v.items()]}, f, indent=1)


if __name__ == "__main__":
    main()
