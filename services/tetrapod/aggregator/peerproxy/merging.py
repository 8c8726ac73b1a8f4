"""Merging of the aggregated discovery documents of several servers, as pure functions.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated/peer_aggregated_handler.go;
staging/src/k8s.io/apimachinery/pkg/util/sort/sort.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise

from tetrapod.machinery.gvk import Object


def merge_groups(own: str, local: list[Object], peers: Mapping[str, list[Object]]) -> list[Object]:
    """Return the APIGroupDiscovery objects of all servers, each group once.

    Args:
        own: the ID of this server. Where objects differ, those of the server with the lowest ID come first.
        local: the objects of this server.
        peers: the objects of peers by the ID of the server.
    """
    if not peers:
        return local
    lists = {**peers, own: local}
    merged: dict[str, Object] = {}
    for _, groups in sorted(lists.items()):
        for group in groups:
            name = group["metadata"]["name"]
            merged[name] = _merge_group(merged[name], group) if name in merged else group
    orders = [[group["metadata"]["name"] for group in groups] for _, groups in sorted(lists.items())]
    return [merged[name] for name in _order(orders)]


def _merge_group(first: Object, second: Object) -> Object:
    versions = {version["version"]: version for version in first["versions"]}
    for version in second["versions"]:
        existing = versions.get(version["version"])
        versions[version["version"]] = version if existing is None else _merge_version(existing, version)
    orders = [[version["version"] for version in group["versions"]] for group in (first, second)]
    return {**first, "versions": [versions[name] for name in _order(orders)]}


def _merge_version(first: Object, second: Object) -> Object:
    lists = [version.get("resources") or [] for version in (first, second)]
    resources = {resource["resource"]: resource for resource in lists[0]}
    for resource in lists[1]:
        existing = resources.setdefault(resource["resource"], resource)
        if existing != resource:
            resources[resource["resource"]] = _merge_resource(existing, resource)
    order = _order([[resource["resource"] for resource in each] for each in lists])
    return {**first, "resources": [resources[name] for name in order]}


def _merge_resource(first: Object, second: Object) -> Object:
    """Return a copy of the first resource with the verbs and the subresources of both, each sorted by name.

    A subresource that both have is that of the second resource.
    """
    verbs = sorted({*(first.get("verbs") or ()), *(second.get("verbs") or ())})
    subresources = {
        subresource["subresource"]: subresource
        for resource in (first, second)
        for subresource in resource.get("subresources") or ()
    }
    merged = {**first, "verbs": verbs}
    if subresources:
        merged["subresources"] = [subresources[name] for name in sorted(subresources)]
    return merged


def _order(orders: Sequence[Sequence[str]]) -> list[str]:
    """Return all names in an order that keeps that of each list (upstream: MergePreservingRelativeOrder).

    A list with all names gives the order. Otherwise names without a relative order are sorted, and all names if the
    lists contradict each other.
    """
    names = {name for order in orders for name in order}
    for order in orders:
        if len(order) == len(names) == len(set(order)):
            return list(order)
    following: dict[str, set[str]] = {name: set() for name in names}
    for order in orders:
        for name, next_name in pairwise(order):
            following[name].add(next_name)
    preceding = dict.fromkeys(names, 0)
    for next_names in following.values():
        for name in next_names:
            preceding[name] += 1
    ready = sorted(name for name, count in preceding.items() if not count)
    result = []
    while ready:
        result.append(name := heapq.heappop(ready))
        for next_name in following[name]:
            preceding[next_name] -= 1
            if not preceding[next_name]:
                heapq.heappush(ready, next_name)
    return result if len(result) == len(names) else sorted(names)
