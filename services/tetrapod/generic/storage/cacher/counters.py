"""Counters of the watch cache of one resource.

The cache increments plain attributes; the metrics read them when they are scraped.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go, and the event counters of
pkg/storage/etcd3/metrics
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tetrapod.generic.metrics.counters import CounterFunction
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.registry import RESETS
from tetrapod.generic.metrics.series import on_change, retired

_LABELS: Final = ("group", "resource")
_READ_WAIT: Final = Histogram(
    "apiserver_watch_cache_read_wait_seconds",
    "Histogram of time spent waiting for a watch cache to become fresh.",
    _LABELS,
    (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3),
)
_INITIALIZATION: Final = Histogram(
    "apiserver_watch_cache_initialization_duration_seconds",
    "Histogram of watch cache initialization duration in seconds, broken by resource type.",
    _LABELS,
    (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600),
)
_DISPATCH: Final = Histogram(
    "apiserver_watch_events_dispatch_duration_seconds",
    "Histogram of watch event dispatch latency broken by resource type and pipeline stage. The 'total' stage is the "
    "end-to-end latency of a delivered event.",
    (*_LABELS, "stage"),
    (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


class CacheCounters:
    """The counters of the watch cache of one resource, from which metrics are read at each scrape.

    If a resource is deleted and created again (a CRD), it gets new counters.

    Args:
        labels: the API group and the plural name of the resource.

    Attributes:
        received: events received from the store.
        dispatched: changes passed on to watches (each counts once, even without a watch), and progress notifications.
        bookmarks: progress notifications of the store.
        initial: initial events of watches.
        terminated: watches that were ended because their client was too slow.
        fills: times that the cache was filled.
        fill_errors: failed attempts to fill the cache.
        consistent: consistent reads from the cache.
        fallbacks: consistent reads that had to be answered by the store, although its progress notifications are
            reliable.
        skipped_fallbacks: consistent reads that were rejected instead, behind a gate.
        capacity_increases: times that `Window.capacity` doubled.
        capacity_decreases: times that `Window.capacity` was halved.
        undecodable: stored values that are not JSON objects.
    """

    __slots__ = (
        "_dispatch",
        "_labels",
        "bookmarks",
        "capacity_decreases",
        "capacity_increases",
        "consistent",
        "dispatched",
        "fallbacks",
        "fill_errors",
        "fills",
        "initial",
        "received",
        "skipped_fallbacks",
        "terminated",
        "undecodable",
    )

    def __init__(self, labels: tuple[str, str]) -> None:
        self._labels = labels
        self._dispatch: list[list[float]] = []
        self.reset()

    def reset(self) -> None:
        """Set all counters to 0, when a client resets the metrics."""
        self.received = 0
        self.dispatched = 0
        self.bookmarks = 0
        self.initial = 0
        self.terminated = 0
        self.fills = self.fill_errors = 0
        self.consistent = self.fallbacks = self.skipped_fallbacks = 0
        self.capacity_increases = self.capacity_decreases = 0
        self.undecodable = 0

    def record_fill(self, seconds: float) -> None:
        """Record that the cache was filled, in this number of seconds."""
        self.fills += 1
        _INITIALIZATION.observe(self._labels, seconds)

    def record_wait(self, seconds: float) -> None:
        """Record for how many seconds a read waited for the cache to reach its revision."""
        _READ_WAIT.observe(self._labels, seconds)

    def record_delivery(self, times: int, received: float, applied: float, now: float) -> None:
        """Record the latency of changes that were delivered to watches, as `times` observations.

        The observations are spread evenly over the time of the delivery. All times are those of `time.monotonic`.

        Args:
            times: number of events delivered, summed over all watches.
            received: time at which the changes were received from the store.
            applied: time at which they were applied to the cache.
            now: time of the last delivery.
        """
        if not self._dispatch:
            self._dispatch = [
                _DISPATCH.row((*self._labels, stage)) for stage in ("total", "storage_to_cache", "cache_to_watcher")
            ]
        total, to_cache, to_watcher = self._dispatch
        _DISPATCH.spread(total, applied - received, now - received, times)
        _DISPATCH.spread(to_cache, applied - received, applied - received, times)
        _DISPATCH.spread(to_watcher, 0.0, now - applied, times)


_by_resource: Final[dict[tuple[str, str], CacheCounters]] = {}


def counters_of(group: str, resource: str) -> CacheCounters:
    """Return the counters of a resource, which the first call creates and adds to the metrics.

    If the resource has been deleted, each call returns new counters, which the metrics do not show.

    Args:
        group: the API group, "" for the core group.
        resource: the plural name.
    """
    labels = group, resource
    counters = _by_resource.get(labels)
    if counters is None:
        counters = CacheCounters(labels)
        if not retired(_LABELS, labels):
            _by_resource[labels] = counters
    return counters


def _drop(labels: Mapping[str, str]) -> None:
    if labels.keys() == set(_LABELS):
        _by_resource.pop((labels["group"], labels["resource"]), None)


on_change(_drop)


def _reset_all() -> None:
    for counters in _by_resource.values():
        counters.reset()


RESETS.append(_reset_all)


def _define_counter(name: str, text: str, read: Callable[[CacheCounters], int]) -> None:
    """Define a counter metric with one series for each resource whose count is not 0.

    Args:
        text: the help text of the metric.
        read: returns the count from the counters of a resource.
    """
    CounterFunction(name, text, _LABELS, lambda: _counts(read))


def _counts(read: Callable[[CacheCounters], int]) -> list[tuple[tuple[str, ...], float]]:
    return [(labels, float(count)) for labels, counters in list(_by_resource.items()) if (count := read(counters))]


def bookmarks() -> list[tuple[tuple[str, ...], float]]:
    """Return the number of progress notifications of the store, by group and resource."""
    return _counts(lambda counters: counters.bookmarks)


def _consistent() -> Sequence[tuple[tuple[str, ...], float]]:
    samples: list[tuple[tuple[str, ...], float]] = []
    for labels, counters in list(_by_resource.items()):
        samples += [((*labels, "true", "false"), float(counters.consistent))] if counters.consistent else []
        samples += [((*labels, "true", "true"), float(counters.fallbacks))] if counters.fallbacks else []
        if counters.skipped_fallbacks:
            samples.append(((*labels, "false", "skipped"), float(counters.skipped_fallbacks)))
    return samples


_define_counter(
    "apiserver_init_events_total",
    "Counter of init events processed in watch cache broken by resource type.",
    lambda counters: counters.initial,
)
_define_counter(
    "apiserver_watch_cache_events_received_total",
    "Counter of events received in watch cache broken by resource type.",
    lambda counters: counters.received,
)
_define_counter(
    "apiserver_storage_events_received_total",
    "Number of etcd events received split by kind.",
    lambda counters: counters.received,
)
_define_counter(
    "apiserver_watch_cache_events_dispatched_total",
    "Counter of events dispatched in watch cache broken by resource type.",
    lambda counters: counters.dispatched,
)
_define_counter(
    "apiserver_terminated_watchers_total",
    "Counter of watchers closed due to unresponsiveness broken by resource type.",
    lambda counters: counters.terminated,
)
_define_counter(
    "apiserver_watch_cache_initializations_total",
    "Counter of watch cache initializations broken by resource type.",
    lambda counters: counters.fills,
)
_define_counter(
    "apiserver_watch_cache_initialization_errors_total",
    "Counter of watch cache initialization errors broken by resource type.",
    lambda counters: counters.fill_errors,
)
_define_counter(
    "watch_cache_capacity_increase_total",
    "Total number of watch cache capacity increase events broken by resource type.",
    lambda counters: counters.capacity_increases,
)
_define_counter(
    "watch_cache_capacity_decrease_total",
    "Total number of watch cache capacity decrease events broken by resource type.",
    lambda counters: counters.capacity_decreases,
)
_define_counter(
    "etcd_bookmark_total",
    "Number of etcd bookmarks (progress notify events) split by kind.",
    lambda counters: counters.bookmarks,
)
_define_counter(
    "apiserver_storage_decode_errors_total",
    "Number of stored object decode errors split by object type",
    lambda counters: counters.undecodable,
)
CounterFunction(
    "apiserver_watch_cache_consistent_read_total",
    "Counter for consistent reads from cache.",
    (*_LABELS, "success", "fallback"),
    _consistent,
)
