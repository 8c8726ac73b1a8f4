-- What every script ends with: wrk's figures as one line of JSON, after a marker.
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\nBENCH {"requests":%d,"bytes":%d,"duration":%d,"p50":%d,"p99":%d,"status":%d,"broken":%d}\n',
    summary.requests, summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
