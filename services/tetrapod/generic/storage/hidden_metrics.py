"""Upstream's deprecated metrics of storage, for --show-hidden-metrics-for-version. Importing the module registers them.

Their values are those of the metrics that replaced them.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/metrics, pkg/storage/cacher/metrics
"""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.generic.metrics.counters import Counter, CounterFunction, GaugeFunction
from tetrapod.generic.storage.cacher import counters
from tetrapod.generic.storage.metrics import FETCHED, LISTS, RETURNED, resource_objects

_OF = ("group", "resource")
_Values = list[tuple[tuple[str, ...], float]]


def _from_cache(counter: Counter) -> Callable[[], _Values]:
    """Return a function that reads the values of the series of `counter` that have the label storage="watchcache".

    The function returns (label values, value) for each series. The label `storage` is left out, because the deprecated
    metric, which counts only lists from the watch cache, does not have it.
    """
    place = counter.labels.index("storage")

    def read() -> _Values:
        return [
            (labels[:place] + labels[place + 1 :], value)
            for labels, value in list(counter.values.items())
            if labels[place] == "watchcache"
        ]

    return read


def _objects() -> _Values:
    """Return the number of objects by resource, as the deprecated metric apiserver_storage_objects labels them.

    The label has the form `deployments.apps`.
    """
    return [((f"{resource}.{group}" if group else resource,), value) for (group, resource), value in resource_objects()]


CounterFunction(
    "apiserver_cache_list_total",
    "(Deprecated since 1.37.0) Number of LIST requests served from watch cache",
    (*_OF, "index"),
    _from_cache(LISTS),
)
CounterFunction(
    "apiserver_cache_list_fetched_objects_total",
    "(Deprecated since 1.37.0) Number of objects read from watch cache in the course of serving a LIST request",
    (*_OF, "index"),
    _from_cache(FETCHED),
)
CounterFunction(
    "apiserver_cache_list_returned_objects_total",
    "(Deprecated since 1.37.0) Number of objects returned for a LIST request from watch cache",
    _OF,
    _from_cache(RETURNED),
)
GaugeFunction(
    "apiserver_storage_objects",
    "(Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of stored "
    "objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    ("resource",),
    _objects,
)
GaugeFunction(
    "etcd_bookmark_counts",
    "(Deprecated since 1.36.0) Number of etcd bookmarks (progress notify events) split by kind.",
    _OF,
    counters.bookmarks,
)
