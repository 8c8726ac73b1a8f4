"""What /flagz shows of the command line is as it would be given."""

from __future__ import annotations

from tetrapod.cli.options import Options


def test_times_are_shown_as_durations_and_rates_as_numbers() -> None:
    flags = Options(request_timeout=90.0, audit_webhook_batch_throttle_qps=2.5, etcd_servers=("https://u:p@etcd:2379",)).flags()
    assert flags["request-timeout"] == "1m30s" and flags["event-ttl"] == "1h0m0s"
    assert (flags["audit-log-batch-throttle-qps"], flags["audit-webhook-batch-throttle-qps"]) == ("0", "2.5")
    assert flags["etcd-servers"] == "[https://***@etcd:2379]"
