"""Metrics of the plugin that signs service account tokens.

Upstream: pkg/serviceaccount/externaljwt/metrics/metrics.go
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram

_FETCHED: Final = Gauge(
    "apiserver_externaljwt_fetch_keys_success_timestamp",
    "Unix Timestamp in seconds of the last successful FetchKeys request",
)
_DATA: Final = Gauge(
    "apiserver_externaljwt_fetch_keys_data_timestamp",
    "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the external signer",
)
_FETCHES: Final = Counter(
    "apiserver_externaljwt_fetch_keys_request_total", "Total attempts at syncing supported JWKs", ("code",)
)
_SIGNATURES: Final = Counter("apiserver_externaljwt_sign_request_total", "Total attempts at signing JWT", ("code",))
_DURATION: Final = Histogram(
    "apiserver_externaljwt_request_duration_seconds",
    "Request duration and time for calls to external-jwt-signer",
    ("method", "code"),
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)


def record_call(method: str, code: str, seconds: float) -> None:
    """Record the duration of a call, given the path of its method and the name of its status code."""
    _DURATION.observe((method, code), seconds)


def record_fetch(code: str) -> None:
    """Count an attempt to fetch the keys, and set the time of the last success if it succeeded (code "OK")."""
    _FETCHES.add((code,))
    if code == "OK":
        _FETCHED.set((), time.time())


def record_data(timestamp: float) -> None:
    """Record when the plugin read the keys from their source, in seconds since the epoch."""
    _DATA.set((), timestamp)


def record_signature(code: str) -> None:
    """Count an attempt to sign a token."""
    _SIGNATURES.add((code,))
