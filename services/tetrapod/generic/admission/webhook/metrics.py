"""Metrics of admission webhooks, with upstream's names.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/metrics/metrics.go
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram

MOST_CODE: Final = 600
DURATION: Final = Histogram(
    "apiserver_admission_webhook_admission_duration_seconds",
    "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API "
    "resource and type (validate or admit).",
    ("name", "type", "operation", "rejected"),
    (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0),
)
REQUESTS: Final = Counter(
    "apiserver_admission_webhook_request_total",
    "Admission webhook request total, identified by name and broken out for each admission type (validating or "
    "admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status "
    "code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
    ("name", "type", "operation", "code", "rejected"),
)
REJECTIONS: Final = Counter(
    "apiserver_admission_webhook_rejection_count",
    "Admission webhook rejection count, identified by name and broken out for each admission type (validating or "
    "admit) and operation. Additional labels specify an error type (calling_webhook_error or "
    "apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if "
    "the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or "
    "equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
    ("name", "type", "operation", "error_type", "rejection_code"),
)
FAIL_OPEN: Final = Counter(
    "apiserver_admission_webhook_fail_open_count",
    "Admission webhook fail open count, identified by name and broken out for each admission type (validating or "
    "admit).",
    ("name", "type"),
)


class Observation:
    """The metrics of one call of a webhook, which begins when this is created.

    Args:
        name: the name of the webhook.
        phase: "admit" or "validating", as in upstream's labels.
        operation: the operation of the request, such as "CREATE".
    """

    def __init__(self, name: str, phase: str, operation: str) -> None:
        self._labels = (name, phase, operation)
        self._start = time.perf_counter()

    def called(self, code: int, *, rejected: bool) -> None:
        """Record the end of the call, with its duration and the HTTP status code.

        `rejected` says whether the request is rejected because of the call.
        """
        name, phase, operation = self._labels
        rejected_label = "true" if rejected else "false"
        DURATION.observe((name, phase, operation, rejected_label), time.perf_counter() - self._start)
        REQUESTS.add((name, phase, operation, str(min(code, MOST_CODE)), rejected_label))

    def rejected(self, error_type: str, code: int) -> None:
        """Count a rejection of the request.

        Args:
            error_type: "calling_webhook_error", "apiserver_internal_error", or "no_error" for a denial by the webhook.
            code: the HTTP status code of the rejection; 0 for an internal error.
        """
        REJECTIONS.add((*self._labels, error_type, str(min(code, MOST_CODE))))

    def failed_open(self) -> None:
        """Count a failure that was ignored because of the failurePolicy."""
        FAIL_OPEN.add(self._labels[:2])
