"""Serves the examples, opens one of their pages in a browser without a window, and
prints what the page reports.

    python3 serve.py chromium 'train-step/index.html?build=build&report'
"""
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

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
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
         f"http://127.0.0.1:{server.server_port}/{page}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    answered = done.wait(300)
    window.terminate()
    window.wait()
if not answered:
    sys.exit(f"the page did not report within 5 minutes: does {browser} start?")
text = report[0]
print(text, end="")
sys.exit(1 if "error:" in text or not text else 0)
