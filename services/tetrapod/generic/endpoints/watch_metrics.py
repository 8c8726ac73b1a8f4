"""Metrics of sent watch events.

All watchers of a resource get the same bytes one after the other, so their size bucket is computed only once.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/metrics/metrics.go
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from tetrapod.generic.metrics.counters import CounterFunction
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.series import on_change

_Resource: TypeAlias = tuple[str, str, str]
_OF: Final = ("group", "version", "resource")
_SIZES: Final = Histogram(
    "apiserver_watch_events_sizes", "Watch event size distribution in bytes", _OF, tuple(1024 << i for i in range(8))
)
TO_INITIAL_END: Final = Histogram(
    "apiserver_watch_list_duration_seconds",
    "Response latency distribution in seconds for watch list requests broken by group, version, resource and scope.",
    (*_OF, "scope"),
    (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300),
)


class Sent:
    """Counts the watch events sent for one resource (group, version, resource), and their bytes, in the metrics."""

    __slots__ = ("_bucket", "_last", "_row")

    def __init__(self, resource: _Resource) -> None:
        self._row = _SIZES.row(resource)
        self._last, self._bucket = b"", 0

    def count(self, frames: Sequence[bytes]) -> None:
        """Count the encoded events that were sent to one watcher."""
        row, native = self._row, _SIZES.native
        for frame in frames:
            if frame is not self._last:
                self._last, self._bucket = frame, bisect_left(_SIZES.buckets, len(frame))
            row[self._bucket] += 1
            row[-1] += len(frame)
            if native is not None:
                native.add(row, len(frame))


_counts_by_resource: Final[dict[_Resource, Sent]] = {}


def _forget(labels: Mapping[str, str]) -> None:
    """Drop the counts of a resource that was deleted or created again, in all versions.

    `labels` are its group and resource.
    """
    for key in [
        key for key in _counts_by_resource if (key[0], key[2]) == (labels.get("group"), labels.get("resource"))
    ]:
        del _counts_by_resource[key]


on_change(_forget)


def sent_of(resource: _Resource) -> Sent:
    """Return the counts of a resource (group, version, resource), creating them at the first call."""
    return _counts_by_resource.get(resource) or _counts_by_resource.setdefault(resource, Sent(resource))


CounterFunction(
    "apiserver_watch_events_total",
    "Number of events sent in watch clients",
    _OF,
    lambda: [(resource, sum(row[:-1])) for resource, row in list(_SIZES.values.items())],
)
