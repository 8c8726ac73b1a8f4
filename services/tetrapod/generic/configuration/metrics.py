"""Metrics of files that are reloaded: how often, when, and which content is in force.

Upstream: k8s.io/apiserver/pkg/server/options/{authenticationconfig,authorizationconfig}/metrics. Servers in one process (tests) share them.
"""

from __future__ import annotations

import time

from tetrapod.generic.configuration.identity import apiserver_id, hashed
from tetrapod.generic.metrics import Counter, Gauge

_LABELS = ("status", "apiserver_id_hash")


class ReloadMetrics:
    """`what` is `authentication`, `authorization` or `encryption`."""

    def __init__(self, what: str) -> None:
        prefix, about = f"apiserver_{what}_config_controller", f"{what} configuration"
        self._reloads = Counter(
            f"{prefix}_automatic_reloads_total",
            f"Total number of automatic reloads of {about} split by status and apiserver identity.",
            _LABELS,
        )
        self._times = Gauge(
            f"{prefix}_automatic_reload_last_timestamp_seconds",
            f"Timestamp of the last automatic reload of {about} split by status and apiserver identity.",
            _LABELS,
        )
        self._info = Gauge(
            f"{prefix}_last_config_info",
            f"Information about the last applied {about} with hash as label, split by apiserver identity.",
            ("apiserver_id_hash", "hash"),
        )

    def failed(self) -> None:
        self._count("failure")

    def succeeded(self, data: str) -> None:
        self.succeeded_hash(hashed(data))

    def succeeded_hash(self, digest: str) -> None:
        """The same where the content is a secret that nobody keeps."""
        self._count("success")
        self.applied_hash(digest)

    def applied(self, data: str) -> None:
        """This content is in force (the first one is no reload)."""
        self.applied_hash(hashed(data))

    def applied_hash(self, digest: str) -> None:
        self._info.values.clear()
        self._info.set((hashed(apiserver_id()), digest), 1)

    def _count(self, status: str) -> None:
        labels = (status, hashed(apiserver_id()))
        self._reloads.add(labels)
        self._times.set(labels, time.time())
