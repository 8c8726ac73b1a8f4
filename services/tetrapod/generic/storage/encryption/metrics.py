"""Metrics of encryption and of KMS plugins, with upstream's names.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/metrics.go,
pkg/storage/value/encrypt/envelope/metrics/metrics.go, pkg/server/options/encryptionconfig/metrics/metrics.go
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

from tetrapod.generic.configuration.metrics import ReloadMetrics
from tetrapod.generic.configuration.server_identity import apiserver_id, label_hash
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram

OK: Final = "OK"
NO_RPC: Final = "unknown-non-grpc"
FROM_STORAGE: Final = "from_storage"
TO_STORAGE: Final = "to_storage"
_KEYS_KEPT: Final = 100


def _exponential(start: float, count: int) -> tuple[float, ...]:
    return tuple(start * 2**i for i in range(count))


RELOADS: Final = ReloadMetrics(
    "encryption",
    reloads_help="Total number of reload successes and failures of encryption configuration split by apiserver "
    "identity.",
    times_help="Timestamp of the last successful or failed automatic reload of encryption configuration split by "
    "apiserver identity.",
)
_DURATION: Final = Histogram(
    "apiserver_storage_transformation_duration_seconds",
    "Latencies in seconds of value transformation operations.",
    ("transformation_type", "transformer_prefix"),
    _exponential(5e-6, 25),
)
_OPERATIONS: Final = Counter(
    "apiserver_storage_transformation_operations_total",
    "Total number of transformations. Successful transformation will have a status 'OK' and a varied status string "
    "when the transformation fails. The status, resource, and transformation_type fields can be used for alerting "
    "purposes. For example, you can monitor for encryption/decryption failures using the transformation_type (e.g., "
    "from_storage for decryption and to_storage for encryption). Additionally, these fields can be used to ensure "
    "that the correct transformers are applied to each resource.",
    ("resource", "transformation_type", "transformer_prefix", "status"),
)
CACHE_MISSES: Final = Counter(
    "apiserver_storage_envelope_transformation_cache_misses_total",
    "Total number of cache misses while accessing key decryption key(KEK).",
)
KEY_GENERATION: Final = Histogram(
    "apiserver_storage_data_key_generation_duration_seconds",
    "Latencies in seconds of data encryption key(DEK) generation operations.",
    (),
    _exponential(5e-6, 14),
)
Counter(
    "apiserver_storage_data_key_generation_failures_total",
    "Total number of failed data encryption key(DEK) generation operations.",
)
# Only KMS v1 changes the two metrics of the DEK cache. As upstream, the gauge is that of the plugin used last.
DEK_CACHE_FILL: Final = Gauge(
    "apiserver_envelope_encryption_dek_cache_fill_percent",
    "Percent of the cache slots currently occupied by cached DEKs.",
)
DEK_CACHE_FILL.set((), 0.0)
_ARRIVALS: Final = Histogram(
    "apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds",
    "Time (in seconds) of inter arrival of transformation requests.",
    ("transformation_type",),
    _exponential(60, 10),
)
_last_arrivals: dict[str, float] = {}
KMS_LATENCY: Final = Histogram(
    "apiserver_envelope_encryption_kms_operations_latency_seconds",
    "KMS operation duration with gRPC error code status total.",
    ("provider_name", "method_name", "grpc_status_code"),
    _exponential(0.0001, 20),
)
INVALID_KEY_IDS: Final = Counter(
    "apiserver_envelope_encryption_invalid_key_id_from_status_total",
    "Number of times an invalid keyID is returned by the Status RPC call split by error.",
    ("provider_name", "error"),
)
SEED_CACHE_SIZE: Final = Gauge(
    "apiserver_envelope_encryption_dek_source_cache_size",
    "Number of records in data encryption key (DEK) source cache. On a restart, this value is an approximation of the "
    "number of decrypt RPC calls the server will make to the KMS plugin.",
    ("provider_name",),
)
_KEY_IDS: Final = Counter(
    "apiserver_envelope_encryption_key_id_hash_total",
    "Number of times a keyID is used split by transformation type, provider, and apiserver identity.",
    ("transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"),
)
_KEY_ID_TIMES: Final = Gauge(
    "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
    "The last time in seconds when a keyID was used.",
    ("transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"),
)
_STATUS_TIMES: Final = Gauge(
    "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
    "The last time in seconds when a keyID was returned by the Status RPC call.",
    ("provider_name", "key_id_hash", "apiserver_id_hash"),
)


def transformed(resource: str, kind: str, prefix: str, started: float, status: str) -> None:
    """Record a transformation, and its duration if it succeeded.

    Args:
        resource: the resource in the form "secrets" or "deployments.apps".
        kind: `FROM_STORAGE` (decryption) or `TO_STORAGE` (encryption).
        prefix: the prefix of the value, which names the provider ("k8s:enc:aescbc:v1:").
        started: when it began (`time.perf_counter`).
        status: `OK`, or the gRPC status of a failed plugin call, or `NO_RPC` for other errors.
    """
    _OPERATIONS.add((resource, kind, prefix, status))
    if status == OK:
        _DURATION.observe((kind, prefix), time.perf_counter() - started)


def record_arrival(kind: str) -> None:
    """Record a transformation by KMS v1, with the time since the previous one of its kind.

    Args:
        kind: `FROM_STORAGE` (decryption) or `TO_STORAGE` (encryption).
    """
    now = time.monotonic()
    _ARRIVALS.observe((kind,), now - _last_arrivals.get(kind, now))
    _last_arrivals[kind] = now


class _RecentLabels:
    """The most recently used labels of some metrics, which share their labels.

    The series of older labels are deleted, so that a plugin that keeps changing its key ID does not exhaust the memory.

    Args:
        metrics: the metrics in which series of older labels are deleted.
    """

    def __init__(self, *metrics: Counter) -> None:
        self._metrics = metrics
        self._labels: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def use(self, labels: tuple[str, ...]) -> None:
        """Mark the labels as used. With more than 100, delete the series of the least recently used ones."""
        self._labels[labels] = None
        self._labels.move_to_end(labels)
        if len(self._labels) > _KEYS_KEPT:
            oldest, _ = self._labels.popitem(last=False)
            for metric in self._metrics:
                metric.values.pop(oldest, None)


_used_keys: Final = _RecentLabels(_KEY_IDS, _KEY_ID_TIMES)
_status_keys: Final = _RecentLabels(_STATUS_TIMES)


def record_key_use(kind: str, provider: str, key_id: str) -> None:
    """Record that a key of a plugin was used, at the current time.

    Args:
        kind: `FROM_STORAGE` (decryption) or `TO_STORAGE` (encryption).
        provider: the name of the plugin.
        key_id: the ID of its key; the metric contains only its hash.
    """
    labels = (kind, provider, label_hash(key_id), label_hash(apiserver_id()))
    _used_keys.use(labels)
    _KEY_IDS.add(labels)
    _KEY_ID_TIMES.set(labels, time.time())


def record_status_key(provider: str, key_id: str) -> None:
    """Record that a plugin's Status call returned this key ID as its current one, at the current time."""
    labels = (provider, label_hash(key_id), label_hash(apiserver_id()))
    _status_keys.use(labels)
    _STATUS_TIMES.set(labels, time.time())
