"""Tests of /flagz and the log: flag values are shown in the form in which they would be given on the command line."""

from __future__ import annotations

import logging

import pytest

from tetrapod.apps.options.options import Options
from tetrapod.apps.process import log_flags


def test_times_are_shown_as_durations_and_rates_as_numbers() -> None:
    flags = (
        Options()
        .with_flags(
            {
                "request-timeout": 90.0,
                "audit-webhook-batch-throttle-qps": 2.5,
                "etcd-servers": ("https://u:p@etcd:2379",),
            }
        )
        .flags()
    )
    assert flags["request-timeout"] == "1m30s" and flags["event-ttl"] == "1h0m0s"
    assert (flags["audit-log-batch-throttle-qps"], flags["audit-webhook-batch-throttle-qps"]) == ("0", "2.5")
    assert flags["etcd-servers"] == "[https://***@etcd:2379]"


def test_flags_are_logged_as_by_upstream(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        log_flags(Options().with_flags({"tls-min-version": 'V"', "request-timeout": 90.0}).flags())
    lines = [record.getMessage() for record in caplog.records]
    assert {'FLAG: --request-timeout="1m30s"', 'FLAG: --tls-min-version="V\\""', 'FLAG: --v="1"'} <= set(lines)
