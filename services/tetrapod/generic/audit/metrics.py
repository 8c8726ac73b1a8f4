"""Upstream's audit metrics, and the log of events that a plugin could not process (pkg/audit/metrics.go)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from tetrapod.generic.audit.event import Event, legacy_line
from tetrapod.generic.metrics.counters import Counter

log = logging.getLogger(__name__)

EVENT_TOTAL: Final = Counter(
    "apiserver_audit_event_total", "Counter of audit events generated and sent to the audit backend."
)
ERROR_TOTAL: Final = Counter(
    "apiserver_audit_error_total",
    "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.",
    ("plugin",),
)
LEVEL_TOTAL: Final = Counter(
    "apiserver_audit_level_total", "Counter of policy levels for audit events (1 per request).", ("level",)
)
REQUESTS_REJECTED_TOTAL: Final = Counter(
    "apiserver_audit_requests_rejected_total",
    "Counter of apiserver requests rejected due to an error in audit logging backend.",
)


def plugin_error(plugin: str, error: object, impacted: Sequence[Event]) -> None:
    """Count events that a plugin lost, and write them to the server's own log, one line each.

    Args:
        plugin: the name of the plugin ("log", "webhook", "buffered", …).
        error: the reason.
        impacted: the lost events.
    """
    ERROR_TOTAL.add((plugin,), len(impacted))
    lines = "".join(f"\n{legacy_line(event)}" for event in impacted)
    log.error(
        "Error in audit plugin '%s' affecting %d audit events: %s\nImpacted events:%s",
        plugin,
        len(impacted),
        error,
        lines,
    )
