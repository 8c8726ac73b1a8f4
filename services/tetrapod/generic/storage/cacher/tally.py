"""What happens in the cache of one resource, in plain numbers: counting costs an addition, and metrics look them up when scraped.

Upstream: k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go, and of pkg/storage/etcd3/metrics what is counted of events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.generic.metrics import RESETS, CounterFunction, Histogram

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
    """Of one resource, for as long as the process lives: a resource that is dropped and comes again goes on counting."""

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
        self.received = 0
        """Events that came from the store."""
        self.dispatched = 0
        """Those of them that were handed on, and the store's bookmarks."""
        self.bookmarks = 0
        self.initial = 0
        """Events that watches began with."""
        self.terminated = 0
        """Watches that were ended because their client was too slow."""
        self.fills = self.fill_errors = 0
        self.consistent = self.fallbacks = 0
        """Consistent reads from the cache, and those that the store had to answer after all."""
        self.capacity_increases = self.capacity_decreases = 0
        self.undecodable = 0

    def filled(self, seconds: float) -> None:
        self.fills += 1
        _INITIALIZATION.observe(self._of, seconds)

    def waited(self, seconds: float) -> None:
        """For the cache to come as far as somebody wants to read."""
        _READ_WAIT.observe(self._of, seconds)

    def delivered(self, times: int, came: float, applied: float, now: float) -> None:
        """Changes that came and were applied at these times have been handed to so many watches, one after the other, the last now."""
        if not self._dispatch:
            self._dispatch = [_DISPATCH.row((*self._of, stage)) for stage in ("total", "storage_to_cache", "cache_to_watcher")]
        total, to_cache, to_watcher = self._dispatch
        _DISPATCH.spread(total, applied - came, now - came, times)
        _DISPATCH.spread(to_cache, applied - came, applied - came, times)
        _DISPATCH.spread(to_watcher, 0.0, now - applied, times)


_tallies: Final[dict[tuple[str, str], Tally]] = {}


def tally_of(group: str, resource: str) -> Tally:
    of = group, resource
    return _tallies.get(of) or _tallies.setdefault(of, Tally(of))


def _begin_anew() -> None:
    for tally in _tallies.values():
        tally.begin()


RESETS.append(_begin_anew)


def _counted(name: str, text: str, read: Callable[[Tally], int]) -> None:
    """A counter of each resource of which there is something to count."""

    def of_all() -> Sequence[tuple[tuple[str, ...], float]]:
        return [(of, float(count)) for of, tally in list(_tallies.items()) if (count := read(tally))]

    CounterFunction(name, text, _OF, of_all)


def _consistent() -> Sequence[tuple[tuple[str, ...], float]]:
    found: list[tuple[tuple[str, ...], float]] = []
    for of, tally in list(_tallies.items()):
        found += [((*of, "true", "false"), float(tally.consistent))] if tally.consistent else []
        found += [((*of, "true", "true"), float(tally.fallbacks))] if tally.fallbacks else []
    return found


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
