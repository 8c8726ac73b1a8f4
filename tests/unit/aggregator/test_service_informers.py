"""The index of EndpointSlices by Service."""

from __future__ import annotations

from typing import Any, cast

from tetrapod.aggregator.service_informers import ClusterInformers
from tetrapod.machinery.gvk import Object
from unit.aggregator.objects import FakeClient


def _slice(name: str, service: str, version: str = "1") -> Object:
    labels = {"kubernetes.io/service-name": service}
    return {"metadata": {"namespace": "ns", "name": name, "labels": labels, "resourceVersion": version}}


def _informers() -> ClusterInformers:
    return ClusterInformers(cast(Any, FakeClient()))


def test_slices_follow_their_service() -> None:
    informers = _informers()
    changes: list[tuple[str, str]] = []
    informers.on_change(lambda namespace, name: changes.append((namespace, name)))
    first, second, moved = _slice("a", "api"), _slice("a", "api", "2"), _slice("a", "web", "3")
    informers._slice_changed(None, first)
    informers._slice_changed(first, second)
    assert informers.endpoint_slices("ns", "api") == [second]
    informers._slice_changed(second, moved)
    assert (informers.endpoint_slices("ns", "api"), informers.endpoint_slices("ns", "web")) == ([], [moved])
    assert set(changes) == {("ns", "api"), ("ns", "web")}


def test_services_without_slices_are_forgotten() -> None:
    informers = _informers()
    for i in range(10):
        informers._slice_changed(None, _slice("a", f"api-{i}"))
        informers._slice_changed(_slice("a", f"api-{i}"), None)
    assert not informers._by_service
