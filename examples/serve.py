"""Serves the examples, opens one of their pages in a headless browser, and prints the
report that the page sends.

    python3 serve.py chromium 'train-step/index.html?build=build&report'

WebGPU runs on SwiftShader, a software GPU that is part of Chromium.
"""
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from time import monotonic

browser, page = sys.argv[1], sys.argv[2]
report, done = [], Event()


class Handler(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}

    def do_POST(self):
        report.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()
        done.set()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=Path(__file__).parent))
Thread(target=server.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    window = subprocess.Popen(
        [browser, "--headless", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
         "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", f"http://127.0.0.1:{server.server_port}/{page}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    end = monotonic() + 300
    while not done.wait(0.1) and window.poll() is None and monotonic() < end:
        pass
    ended = window.poll()
    window.terminate()
    window.wait()
if not report and ended is not None:
    sys.exit(f"{browser} ended with status {ended} before the page reported: does it start?")
if not report:
    sys.exit("the page did not report within 5 minutes")
text = report[0]
print(text, end="")
sys.exit(1 if "error:" in text or not text else 0)
