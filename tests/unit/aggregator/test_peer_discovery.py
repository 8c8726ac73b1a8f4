"""Tests of the choice of peers, and of the group-versions that are not taken from them."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from tetrapod.aggregator.crd_registration import declared_versions
from tetrapod.aggregator.peerproxy import exclusion as exclusion_module
from tetrapod.aggregator.peerproxy.discovery import PeerConfig, PeerDiscovery
from tetrapod.aggregator.peerproxy.exclusion import Exclusion
from tetrapod.aggregator.peerproxy.proxy import PeerProxy
from tetrapod.generic.client.interface import Client
from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.generic.http.request import Request
from tetrapod.generic.proxy import BackendPool, ClientTLS
from tetrapod.generic.server.kubernetes_service.identity import NAMESPACE, PEER_ADDRESS
from tetrapod.machinery.gvk import GroupVersion, GroupVersionResource, Object
from unit.aggregator.objects import FakeClient

CUSTOM = GroupVersion("example.com", "v1")
BUILT_IN = GroupVersion("resource.k8s.io", "v1beta1")


def lease(name: str, renewed: str = "1", address: Any = "10.0.0.1:6443", **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, "resourceVersion": renewed, "annotations": {PEER_ADDRESS: address}, **metadata},
        "spec": {"holderIdentity": f"{name}_1", "renewTime": renewed},
    }


def discovery(exclusion: Exclusion | None = None) -> PeerDiscovery:
    config = PeerConfig("own", ClientTLS())
    exclusion = exclusion or Exclusion(list)
    return PeerDiscovery(config, cast(Client, FakeClient()), BackendPool(), exclusion)


def add(peers: PeerDiscovery, new: Object) -> None:
    peers.leases._put((NAMESPACE, new["metadata"]["name"]), new)


def document(*versions: GroupVersion) -> dict[GroupVersion, Object]:
    return {gv: {"version": gv.version, "resources": [{"resource": "things"}]} for gv in versions}


def groups(peers: PeerDiscovery) -> list[str]:
    return [group["metadata"]["name"] for group in peers.merged([])]


# --- exclusion


async def test_a_deleted_version_stays_excluded() -> None:
    active = [CUSTOM]
    exclusion = Exclusion(lambda: active)
    exclusion.read()
    assert exclusion.generation == 1
    active.clear()
    exclusion.read()
    assert exclusion.versions == {CUSTOM}


async def test_group_versions_are_read_once_for_several_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusion_module, "_DELAY", 0.01)
    reads: asyncio.Queue[None] = asyncio.Queue()

    def active() -> list[GroupVersion]:
        reads.put_nowait(None)
        return [CUSTOM]

    exclusion = Exclusion(active)
    for _ in range(2):
        for _ in range(5):
            exclusion.changed()
        assert reads.empty()
        await asyncio.wait_for(reads.get(), 10)
        await asyncio.sleep(0.05)
        assert reads.empty()
    assert exclusion.versions == {CUSTOM}


async def test_a_deleted_version_does_not_return_to_the_documents_when_its_exclusion_ends() -> None:
    active = [CUSTOM]
    exclusion = Exclusion(lambda: active)
    peers = discovery(exclusion)
    for name in ("own", "a", "b"):
        add(peers, lease(name))
    peers._keep("a", document(CUSTOM, BUILT_IN))
    peers._keep("b", document(CUSTOM))
    exclusion.read()
    active.clear()
    exclusion.read()
    assert groups(peers) == ["resource.k8s.io"]
    peers.queue._queue.clear()
    peers.queue._waiting.clear()
    generation = peers.generation

    exclusion._expire(CUSTOM)
    assert groups(peers) == ["resource.k8s.io"]
    assert peers.serving(GroupVersionResource(*CUSTOM, "things")) == []
    assert peers.serving(GroupVersionResource(*BUILT_IN, "things")) == ["a"]
    assert peers.generation > generation
    assert list(peers.queue._queue) == ["a", "b"]  # the documents are fetched again

    peers._keep("b", document(CUSTOM))  # the peer serves the group-version as its own
    assert sorted(groups(peers)) == ["example.com", "resource.k8s.io"]


async def test_a_version_that_was_created_again_stays_excluded() -> None:
    active = [CUSTOM]
    exclusion = Exclusion(lambda: active)
    peers = discovery(exclusion)
    peers._keep("a", document(CUSTOM))
    exclusion.read()
    active.clear()
    exclusion.read()
    active.append(CUSTOM)
    exclusion.read()
    exclusion._expire(CUSTOM)
    assert exclusion.versions == {CUSTOM}
    assert groups(peers) == []


async def test_a_request_for_an_excluded_version_does_not_read_the_local_documents() -> None:
    exclusion = Exclusion(lambda: [CUSTOM])
    exclusion.read()
    proxy = PeerProxy(discovery(exclusion), cast(DiscoverySource, None), BackendPool())
    assert await proxy.handle(cast(Request, None), GroupVersionResource(*CUSTOM, "things")) is None


def test_versions_that_are_not_served_are_declared() -> None:
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": False}]
    declared = declared_versions({"spec": {"group": "example.com", "versions": versions}})
    assert declared == {CUSTOM, GroupVersion("example.com", "v2")}
    assert declared_versions({"spec": {"group": "example.com", "versions": None}}) == set()


# --- peers


def test_peers_that_renewed_their_leases_are_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    peers = discovery()
    add(peers, lease("a"))
    add(peers, lease("b"))
    assert peers.live(["a", "b"]) == ["a", "b"]
    now += 20
    add(peers, lease("b", "2"))
    now += 15
    add(peers, lease("a", resourceVersion="3"))  # another change than a renewal
    assert peers.live(["a", "b"]) == ["b"]
    assert peers.live(["a"]) == ["a"]
    now += 20
    assert peers.live(["a", "b"]) == ["a", "b"]  # none has renewed its Lease
    add(peers, lease("a", "4"))
    assert peers.live(["a", "b"]) == ["a"]
    peers.leases._remove((NAMESPACE, "a"), None)
    assert peers.live(["a", "b"]) == ["a", "b"]


@pytest.mark.parametrize("address", ["[10.0.0.1:6443", "10.0.0.1:port", "10.0.0.1", "", None])
def test_a_peer_with_an_invalid_address_has_no_endpoint(address: Any) -> None:
    peers = discovery()
    add(peers, lease("a", address=address))
    assert peers.endpoint("a") is None


def test_the_endpoint_is_the_address_in_the_annotation() -> None:
    peers = discovery()
    add(peers, lease("a", address="[fd00::1]:6443"))
    endpoint = peers.endpoint("a")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("fd00::1", 6443)


def test_a_lease_without_annotations_has_no_endpoint() -> None:
    peers = discovery()
    add(peers, lease("a", annotations=None))
    assert peers.endpoint("a") is None
    peers.leases.objects[NAMESPACE, "b"] = {"metadata": None}
    assert peers.endpoint("b") is None
    assert peers.endpoint("c") is None
