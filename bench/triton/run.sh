#!/usr/bin/env bash
# Loads what miplc export --triton writes into the real Triton server and asks it for
# predictions. Triton comes from the wheel of nvidia-pytriton, whose python back end
# runs backend.py in the place of the onnxruntime one. Needs Go, Python 3.11 with its
# shared library (Debian: libpython3.11), unzip, and the network. A folder for all that
# may be given.
#
#   bash bench/triton/run.sh [DIR]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(realpath "${1:-$(mktemp -d)}")
http=18000 grpc=18001 metrics=18002
server=$dir/wheel/pytriton/tritonserver
if [ ! -d "$server" ]; then
  python3.11 -m venv "$dir/venv"
  "$dir/venv/bin/pip" install --quiet 'numpy<2' onnxruntime==1.27.0 'tritonclient[all]==2.73.0'
  "$dir/venv/bin/pip" download --quiet --no-deps -d "$dir" nvidia-pytriton==0.7.0
  unzip -qo "$dir"/nvidia_pytriton-*.whl -d "$dir/wheel"
  chmod +x "$server"/bin/tritonserver "$server"/python_backend_stubs/*/triton_python_backend_stub
  cp "$server"/python_backend_stubs/3.11/triton_python_backend_stub "$server"/backends/python/
fi
mkdir -p "$server/backends/onnxruntime"
cp "$here/backend.py" "$server/backends/onnxruntime/model.py"
cd "$here/../.."
rm -rf "$dir/repository"
for signature in bag batch; do
  go run ./cmd/miplc build quickstart -o "$dir/$signature" --set "export.signature=$signature" >"$dir/$signature.log"
  go run ./cmd/miplc export "$dir/$signature" --triton "$dir/repository" --name "quickstart-$signature"
done
TRITON_SITE=$dir/venv/lib/python3.11/site-packages "$server"/bin/tritonserver --model-repository="$dir/repository" \
  --backend-directory="$server/backends" --strict-model-config=true --http-address=127.0.0.1 --grpc-address=127.0.0.1 \
  --metrics-address=127.0.0.1 --http-port=$http --grpc-port=$grpc --metrics-port=$metrics >"$dir/triton.log" 2>&1 &
triton=$!
trap 'kill $triton 2>/dev/null; wait $triton 2>/dev/null || true' EXIT
for _ in $(seq 120); do
  kill -0 $triton 2>/dev/null || { tail -n 30 "$dir/triton.log" >&2; exit 1; }
  python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$http/v2/health/ready')" 2>/dev/null && break
  sleep 1
done
for signature in bag batch; do
  "$dir/venv/bin/python" "$here/check.py" $http $grpc "quickstart-$signature" "$dir/$signature/model.onnx"
done
echo "requests that the dynamic batcher ran at once: $(sed -n 's/.*ran \([0-9]*\) requests at once.*/\1/p' "$dir/triton.log" | sort -n | uniq -c | awk '{printf "%s%d times %d", sep, $1, $2; sep = ", "}')"
