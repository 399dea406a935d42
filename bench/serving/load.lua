-- For wrk: posts one request again and again; BODY and TYPE are read from files that the
-- environment names. Prints one line of JSON at the end.
local file = io.open(os.getenv("BODY"), "rb")
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = os.getenv("TYPE")
if os.getenv("JSON_LENGTH") then wrk.headers["Inference-Header-Content-Length"] = os.getenv("JSON_LENGTH") end

function done(summary, latency)
  local wrong = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout
  io.write(string.format('{"requests": %d, "seconds": %.3f, "wrong": %d, "p50": %d, "p99": %d}\n',
    summary.requests, summary.duration / 1e6, wrong, latency:percentile(50), latency:percentile(99)))
end
