"""Validation of the generic flags.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/server_run_options.go, Validate.
"""

from __future__ import annotations

from tetrapod.apps.options.generic import GenericFlags


def check_generic(flags: GenericFlags) -> None:
    """Check that no number among the generic flags is negative.

    Raises:
        ValueError: a number is negative; the text is upstream's.
    """
    for value, text in (
        (flags.livez_grace_period, "--livez-grace-period can not be a negative value"),
        (flags.max_requests_inflight, "--max-requests-inflight can not be negative value"),
        (flags.max_mutating_requests_inflight, "--max-mutating-requests-inflight can not be negative value"),
        (flags.request_timeout, "--request-timeout can not be negative value"),
        (flags.min_request_timeout, "--min-request-timeout can not be negative value"),
        (flags.shutdown_delay_duration, "--shutdown-delay-duration can not be negative value"),
        (
            flags.shutdown_watch_termination_grace_period,
            "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
        ),
    ):
        if value < 0:
            raise ValueError(text)
