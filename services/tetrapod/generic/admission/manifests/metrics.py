"""Metrics of manifest files for admission. Servers in one process (tests) share them.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/manifest/metrics/metrics.go
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.configuration.server_identity import apiserver_id, label_hash
from tetrapod.generic.metrics.counters import Counter, Gauge

_PREFIX: Final = "apiserver_manifest_admission_config_controller"
_LABELS: Final = ("status", "plugin", "apiserver_id_hash")
_SPLIT: Final = "of admission manifest configuration split by status, plugin, and apiserver identity."
_RELOADS: Final = Counter(f"{_PREFIX}_automatic_reloads_total", f"Total number of automatic reloads {_SPLIT}", _LABELS)
_TIMES: Final = Gauge(
    f"{_PREFIX}_automatic_reload_last_timestamp_seconds",
    f"Timestamp of the last automatic reload {_SPLIT}",
    _LABELS,
)
_INFO: Final = Gauge(
    f"{_PREFIX}_last_config_info",
    "Information about the last applied admission manifest configuration with hash as label, split by plugin and "
    "apiserver identity.",
    ("plugin", "apiserver_id_hash", "hash"),
)


def record_failure(plugin: str) -> None:
    """Count a reload of the plugin's manifests that failed, and record the current time as that of the last failure."""
    _record("failure", plugin)


def record_success(plugin: str, digest: str) -> None:
    """Count a successful load of the plugin's manifests, the first included, and record their hash."""
    _record("success", plugin)
    server = label_hash(apiserver_id())
    for labels in [labels for labels in _INFO.values if labels[0] == plugin]:
        del _INFO.values[labels]
    _INFO.set((plugin, server, digest), 1)


def _record(status: str, plugin: str) -> None:
    labels = (status, plugin, label_hash(apiserver_id()))
    _RELOADS.add(labels)
    _TIMES.set(labels, time.time())
