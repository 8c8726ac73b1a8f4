"""Metrics of JWT authenticators, under upstream's names (plugin/pkg/authenticator/token/oidc/metrics.go)."""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.configuration.server_identity import apiserver_id, label_hash
from tetrapod.generic.metrics.counters import Gauge
from tetrapod.generic.metrics.histograms import Histogram

LATENCY: Final = Histogram(
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for cache miss "
    "only (i.e. when the token is not found in the cache).",
    ("result", "jwt_issuer_hash"),
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_FETCHED: Final = Gauge(
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
    "Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt issuer for the "
    "JWT authenticator.",
    ("result", "jwt_issuer_hash", "apiserver_id_hash"),
)
_KEY_SETS: Final = Gauge(
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
    "Information about the last JWKS fetched by the JWT authenticator with hash as label, split by api server identity "
    "and jwt issuer.",
    ("jwt_issuer_hash", "apiserver_id_hash", "hash"),
)


def fetched(issuer: str, body: bytes | None) -> None:
    """Set the gauges about the last fetch of an issuer's keys, unless a feature gate switches them off.

    Args:
        body: the fetched key set, or None if the fetch failed.
    """
    if not feature_gates.enabled("StructuredAuthenticationConfigurationJWKSMetrics"):
        return
    labels = (label_hash(issuer), label_hash(apiserver_id()))
    _FETCHED.set(("failure" if body is None else "success", *labels), time.time())
    if body is not None:
        _forget_keys(labels)
        _KEY_SETS.set((*labels, label_hash(body.decode("utf-8", "replace"))), 1)


def forget(issuer: str) -> None:
    """Remove the gauges of an issuer that is no longer configured."""
    labels = (label_hash(issuer), label_hash(apiserver_id()))
    _forget_keys(labels)
    for result in ("success", "failure"):
        _FETCHED.values.pop((result, *labels), None)


def _forget_keys(labels: tuple[str, str]) -> None:
    for known in [key for key in _KEY_SETS.values if key[:2] == labels]:
        del _KEY_SETS.values[known]
