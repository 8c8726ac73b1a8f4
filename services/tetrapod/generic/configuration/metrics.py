"""Metrics of configuration files that are reloaded automatically. Servers in one process (tests) share them.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/{authentication,authorization,encryption}config/metrics
"""

from __future__ import annotations

import time

from tetrapod.generic.configuration.server_identity import apiserver_id, label_hash
from tetrapod.generic.metrics.counters import Counter, Gauge

_LABELS = ("status", "apiserver_id_hash")


class ReloadMetrics:
    """The metrics of one kind of configuration file.

    Args:
        configuration: the part of the metrics' names: `authentication`, `authorization` or `encryption`.
        reloads_help: the HELP text of the number of reloads; "" for that of authentication and authorization.
        times_help: the HELP text of the time of the last reload; "" for that of authentication and authorization.
    """

    def __init__(self, configuration: str, *, reloads_help: str = "", times_help: str = "") -> None:
        prefix, about = f"apiserver_{configuration}_config_controller", f"{configuration} configuration"
        self._reloads = Counter(
            f"{prefix}_automatic_reloads_total",
            reloads_help or f"Total number of automatic reloads of {about} split by status and apiserver identity.",
            _LABELS,
        )
        self._times = Gauge(
            f"{prefix}_automatic_reload_last_timestamp_seconds",
            times_help or f"Timestamp of the last automatic reload of {about} split by status and apiserver identity.",
            _LABELS,
        )
        self._info = Gauge(
            f"{prefix}_last_config_info",
            f"Information about the last applied {about} with hash as label, split by apiserver identity.",
            ("apiserver_id_hash", "hash"),
        )

    def failed(self) -> None:
        """Count a failed automatic reload, and record the present time as that of the last failure."""
        self._count("failure")

    def succeeded(self, data: str) -> None:
        """Count a successful automatic reload, and record the hash of the content that is now in use.

        Args:
            data: the new content of the file.
        """
        self.succeeded_hash(label_hash(data))

    def succeeded_hash(self, digest: str) -> None:
        """Do the same as `succeeded` for content that is secret, given its hash."""
        self._count("success")
        self.applied_hash(digest)

    def applied(self, data: str) -> None:
        """Record the hash of the content in use, without counting a reload: for the first load of the file.

        Args:
            data: the content of the file.
        """
        self.applied_hash(label_hash(data))

    def applied_hash(self, digest: str) -> None:
        """Do the same as `applied`, given the hash of the content."""
        self._info.values.clear()
        self._info.set((label_hash(apiserver_id()), digest), 1)

    def _count(self, status: str) -> None:
        labels = (status, label_hash(apiserver_id()))
        self._reloads.add(labels)
        self._times.set(labels, time.time())
