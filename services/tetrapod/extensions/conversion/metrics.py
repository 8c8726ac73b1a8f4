"""Metrics of conversion webhooks, with upstream's names.

Upstream: apiextensions-apiserver/pkg/apiserver/conversion/metrics.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram

CALL: Final = "conversion_webhook_call_failure"
MALFORMED: Final = "conversion_webhook_malformed_response_failure"
PARTIAL: Final = "conversion_webhook_partial_response_failure"
INVALID: Final = "conversion_webhook_invalid_converted_object_failure"

_LABELS: Final = ("result", "failure_type")
_REQUESTS: Final = Counter(
    "apiserver_conversion_webhook_request_total",
    "Counter for conversion webhook requests with success/failure and failure error type",
    _LABELS,
)
_LATENCY: Final = Histogram(
    "apiserver_conversion_webhook_duration_seconds",
    "Conversion webhook request latency",
    _LABELS,
    (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0),
)
_BY_CRD: Final = Histogram(
    "apiserver_crd_conversion_webhook_duration_seconds",
    "CRD webhook conversion duration in seconds",
    ("crd_name", "from_version", "to_version", "succeeded"),
    tuple(0.001 * 2**i for i in range(15)),
)


def observe(crd: str, source: str, target: str, seconds: float, failure: str = "") -> None:
    """Record one call of a conversion webhook in the metrics.

    Args:
        crd: the name of the definition.
        source: the version of the objects.
        target: the requested version.
        seconds: the duration of the call.
        failure: one of this module's constants `CALL`, `MALFORMED`, `PARTIAL` and `INVALID`; "" for success.
    """
    labels = ("failure", failure) if failure else ("success", "")
    _REQUESTS.add(labels)
    _LATENCY.observe(labels, seconds)
    _BY_CRD.observe((crd, source, target, "false" if failure else "true"), seconds)
