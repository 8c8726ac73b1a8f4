"""Validation of the generic flags.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/server_run_options.go, Validate.
"""

from __future__ import annotations

from tetrapod.apps.options.generic import GenericFlags
from tetrapod.machinery.golang.regular_expressions import compile_pattern


def check_generic(flags: GenericFlags) -> None:
    """Check that no number among the generic flags is negative, and that the patterns of origins are safe.

    Raises:
        ValueError: a flag is invalid; the text is upstream's.
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
    for origin in flags.cors_allowed_origins:
        _check_origin(origin)


def _check_origin(pattern: str) -> None:
    """Check that a pattern of --cors-allowed-origins is pinned to the start and end of the host (CVE-2022-1996).

    Upstream: staging/src/k8s.io/apiserver/pkg/server/options/server_run_options.go, validateCorsAllowedOriginList

    Raises:
        ValueError: it is not, or is no valid regular expression; the text is upstream's.
    """
    text = "--cors-allowed-origins has an invalid regular expression"
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None
    if not any(mark in pattern for mark in ("^", "//")) or not any(mark in pattern for mark in ("$", ":")):
        raise ValueError(f"{text}: regular expression does not pin to start/end of host in the origin header")
