"""The metrics of watches with a shard selector.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/metrics/metrics.go, WatchShardsTotal and
WatchFilteredEventsTotal
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Final

from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.storage.entry import Entry, Predicate
from tetrapod.generic.storage.watch import Sink, Watch, WatchEvent
from tetrapod.generic.storage.wrappers import ForwardingWatch
from tetrapod.machinery.gvk import GroupResource

_LABELS: Final = ("group", "resource")
_OPEN: Final = Gauge(
    "apiserver_watch_shards_total",
    "Number of active sharded watch connections broken by resource type.",
    _LABELS,
)
_FILTERED: Final = Counter(
    "apiserver_watch_filtered_events_total",
    "Counter of events filtered out by shard selector during watch dispatch, broken by resource type.",
    _LABELS,
)


def counted_predicate(predicate: Predicate, resource: GroupResource) -> Predicate:
    """Return the predicate of a watch, which counts the states of objects that its shard does not contain.

    As upstream, an event counts twice if neither the object nor its former state is in the shard.

    Args:
        predicate: the selectors of the watch, with or without a shard selector.
        resource: the watched resource.
    """
    if predicate.shard is None:
        return predicate
    return replace(predicate, shard=_counted(predicate.shard, (resource.group, resource.resource)))


def _counted(matches: Callable[[Entry], bool], labels: tuple[str, str]) -> Callable[[Entry], bool]:
    def counted(entry: Entry) -> bool:
        matched = matches(entry)
        if not matched:
            _FILTERED.add(labels)
        return matched

    return counted


class ShardedWatch(ForwardingWatch):
    """A watch with a shard selector, which is counted from its creation until it is closed.

    Args:
        inner: the watch whose events are forwarded.
        resource: the watched resource.
    """

    def __init__(self, inner: Watch, resource: GroupResource) -> None:
        super().__init__(inner)
        self._labels = (resource.group, resource.resource)
        self._closed = False
        _OPEN.add(self._labels)

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        return aiter(self._inner)

    def initial(self) -> AsyncIterator[list[WatchEvent]]:
        return self._inner.initial()

    def subscribe(self, sink: Sink) -> None:
        self._inner.subscribe(sink)

    def close(self) -> None:
        super().close()
        if not self._closed:
            self._closed = True
            _OPEN.add(self._labels, -1)
