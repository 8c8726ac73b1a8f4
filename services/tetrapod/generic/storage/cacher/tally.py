"""Counters of the watch cache of one resource. Counting costs one addition; metrics read the counters when they are
scraped.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go, and the event counters of
pkg/storage/etcd3/metrics
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tetrapod.generic.metrics import RESETS, CounterFunction, Histogram
from tetrapod.generic.series import on_change, retired

_OF: Final = ("group", "resource")
_READ_WAIT: Final = Histogram(
    "apiserver_watch_cache_read_wait_seconds",
    "Histogram of time spent waiting for a watch cache to become fresh.",
    _OF,
    (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3),
)
_INITIALIZATION: Final = Histogram(
    "apiserver_watch_cache_initialization_duration_seconds",
    "Histogram of watch cache initialization duration in seconds, broken by resource type.",
    _OF,
    (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600),
)
_DISPATCH: Final = Histogram(
    "apiserver_watch_events_dispatch_duration_seconds",
    "Histogram of watch event dispatch latency broken by resource type and pipeline stage. The 'total' stage is the end-to-end latency of "
    "a delivered event.",
    (*_OF, "stage"),
    (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


class Tally:
    """The counters of one resource. They start at 0 again if the resource is deleted and created again."""

    __slots__ = (
        "_dispatch",
        "_of",
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
        "terminated",
        "undecodable",
    )

    def __init__(self, of: tuple[str, str]) -> None:
        self._of = of
        self._dispatch: list[list[float]] = []
        self.begin()

    def begin(self) -> None:
        """Reset the counters."""
        self.received = 0
        """Events received from the store."""
        self.dispatched = 0
        """Events delivered to watches, and bookmarks of the store."""
        self.bookmarks = 0
        self.initial = 0
        """Initial events of watches."""
        self.terminated = 0
        """Watches that were ended because their client was too slow."""
        self.fills = self.fill_errors = 0
        self.consistent = self.fallbacks = 0
        """Consistent reads from the cache, and those that had to be answered by the store."""
        self.capacity_increases = self.capacity_decreases = 0
        self.undecodable = 0

    def filled(self, seconds: float) -> None:
        """Record a fill of the cache that took this long."""
        self.fills += 1
        _INITIALIZATION.observe(self._of, seconds)

    def waited(self, seconds: float) -> None:
        """Record how long a read waited for the cache to reach its revision."""
        _READ_WAIT.observe(self._of, seconds)

    def delivered(self, times: int, came: float, applied: float, now: float) -> None:
        """Record the latency of changes that were delivered to `times` watches one after the other.

        Args:
            times: number of deliveries.
            came: time at which the changes were received.
            applied: time at which they were applied to the cache.
            now: time of the last delivery.
        """
        if not self._dispatch:
            self._dispatch = [_DISPATCH.row((*self._of, stage)) for stage in ("total", "storage_to_cache", "cache_to_watcher")]
        total, to_cache, to_watcher = self._dispatch
        _DISPATCH.spread(total, applied - came, now - came, times)
        _DISPATCH.spread(to_cache, applied - came, applied - came, times)
        _DISPATCH.spread(to_watcher, 0.0, now - applied, times)


_tallies: Final[dict[tuple[str, str], Tally]] = {}


def tally_of(group: str, resource: str) -> Tally:
    """Return the counters of a resource. Those of a deleted resource are not reported."""
    labels = group, resource
    tally = _tallies.get(labels)
    if tally is None:
        tally = Tally(labels)
        if not retired(_OF, labels):
            _tallies[labels] = tally
    return tally


def _forget(labels: Mapping[str, str]) -> None:
    if labels.keys() == set(_OF):
        _tallies.pop((labels["group"], labels["resource"]), None)


on_change(_forget)


def _begin_anew() -> None:
    for tally in _tallies.values():
        tally.begin()


RESETS.append(_begin_anew)


def _counted(name: str, text: str, read: Callable[[Tally], int]) -> None:
    """Define a counter metric that reports every resource with a nonzero count."""

    def of_all() -> Sequence[tuple[tuple[str, ...], float]]:
        return [(of, float(count)) for of, tally in list(_tallies.items()) if (count := read(tally))]

    CounterFunction(name, text, _OF, of_all)


def _consistent() -> Sequence[tuple[tuple[str, ...], float]]:
    samples: list[tuple[tuple[str, ...], float]] = []
    for of, tally in list(_tallies.items()):
        samples += [((*of, "true", "false"), float(tally.consistent))] if tally.consistent else []
        samples += [((*of, "true", "true"), float(tally.fallbacks))] if tally.fallbacks else []
    return samples


_counted(
    "apiserver_init_events_total", "Counter of init events processed in watch cache broken by resource type.", lambda tally: tally.initial
)
_counted(
    "apiserver_watch_cache_events_received_total",
    "Counter of events received in watch cache broken by resource type.",
    lambda tally: tally.received,
)
_counted(
    "apiserver_storage_events_received_total",
    "Number of etcd events received split by kind.",
    lambda tally: tally.received,
)
_counted(
    "apiserver_watch_cache_events_dispatched_total",
    "Counter of events dispatched in watch cache broken by resource type.",
    lambda tally: tally.dispatched,
)
_counted(
    "apiserver_terminated_watchers_total",
    "Counter of watchers closed due to unresponsiveness broken by resource type.",
    lambda tally: tally.terminated,
)
_counted(
    "apiserver_watch_cache_initializations_total",
    "Counter of watch cache initializations broken by resource type.",
    lambda tally: tally.fills,
)
_counted(
    "apiserver_watch_cache_initialization_errors_total",
    "Counter of watch cache initialization errors broken by resource type.",
    lambda tally: tally.fill_errors,
)
_counted(
    "watch_cache_capacity_increase_total",
    "Total number of watch cache capacity increase events broken by resource type.",
    lambda tally: tally.capacity_increases,
)
_counted(
    "watch_cache_capacity_decrease_total",
    "Total number of watch cache capacity decrease events broken by resource type.",
    lambda tally: tally.capacity_decreases,
)
_counted("etcd_bookmark_total", "Number of etcd bookmarks (progress notify events) split by kind.", lambda tally: tally.bookmarks)
_counted(
    "apiserver_storage_decode_errors_total",
    "Number of stored object decode errors split by object type",
    lambda tally: tally.undecodable,
)
CounterFunction(
    "apiserver_watch_cache_consistent_read_total",
    "Counter for consistent reads from cache.",
    (*_OF, "success", "fallback"),
    _consistent,
)
