"""Tests of the changes of Services and EndpointSlices that wait for a write."""

from __future__ import annotations

import copy

from tetrapod.kube_proxy.changes import EndpointChanges, ServiceChanges
from tetrapod.kube_proxy.endpoints import local_ready_counts
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.service_ports import ServiceName
from unit.kube_proxy.objects import NODE, at, endpoint_slice, service

P80 = {"name": "p80", "port": 80}
NAME = ServiceName("ns", "svc")


def test_a_service_is_added_changed_and_removed() -> None:
    changes = ServiceChanges(Family.IPV4)
    first = service("ns", "svc", "10.0.0.1", P80)
    second = service("ns", "svc", "10.0.0.1", {"name": "other", "port": 81})
    assert changes.update(None, first)
    assert changes.apply() == {NAME}
    assert [str(name) for name in changes.ports] == ["ns/svc:p80"]
    assert changes.update(first, second)
    assert changes.apply() == {NAME}
    assert [str(name) for name in changes.ports] == ["ns/svc:other"]
    assert changes.update(second, None)
    assert changes.apply() == {NAME}
    assert not changes.ports


def test_undone_and_irrelevant_changes_are_not_reported() -> None:
    changes = ServiceChanges(Family.IPV4)
    obj = service("ns", "svc", "10.0.0.1", P80)
    changes.update(None, obj)
    assert not changes.update(obj, None)
    changes.update(None, obj)
    changes.apply()
    labelled = copy.deepcopy(obj)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert not changes.update(obj, labelled)
    assert changes.apply() == set()


def test_endpoints_of_several_slices_are_merged_and_sorted() -> None:
    changes = EndpointChanges(Family.IPV4, NODE)
    first = endpoint_slice("ns", "svc", P80, at("10.0.0.9"), at("10.0.0.10", NODE))
    second = endpoint_slice("ns", "svc", P80, at("10.0.0.9", terminating=True, ready=False), at("10.0.0.1", NODE))
    second["metadata"]["name"] = "svc-2"
    assert changes.update(first, removed=False)
    assert changes.update(second, removed=False)
    assert changes.apply().services == {NAME}
    (endpoints,) = changes.endpoints.values()
    assert [str(endpoint) for endpoint in endpoints] == ["10.0.0.10:80", "10.0.0.1:80", "10.0.0.9:80"]
    assert [endpoint.ready for endpoint in endpoints] == [True] * 3  # the pod that does not terminate counts
    assert local_ready_counts(changes.endpoints) == {NAME: 2}
    assert changes.update(first, removed=True)
    changes.apply()
    assert [[str(one) for one in listed] for listed in changes.endpoints.values()] == [["10.0.0.1:80", "10.0.0.9:80"]]
    assert changes.update(second, removed=True)
    changes.apply()
    assert not changes.endpoints


def test_endpoints_without_a_valid_address_are_skipped() -> None:
    changes = EndpointChanges(Family.IPV4, NODE)
    hostile = at("10.0.0.1 -j ACCEPT\n-A INPUT")
    changes.update(endpoint_slice("ns", "svc", P80, hostile, {"addresses": []}, at("10.0.0.1")), removed=False)
    changes.apply()
    assert [[str(one) for one in listed] for listed in changes.endpoints.values()] == [["10.0.0.1:80"]]


def test_slices_of_others_and_unchanged_ones_are_no_change() -> None:
    changes = EndpointChanges(Family.IPV4, NODE)
    obj = endpoint_slice("ns", "svc", P80, at("10.0.0.1"))
    assert changes.update(obj, removed=False)
    assert not changes.update(copy.deepcopy(obj), removed=False)
    assert not changes.update({**obj, "addressType": "IPv6"}, removed=False)
    assert not changes.update({**obj, "metadata": {**obj["metadata"], "labels": {}}}, removed=False)
    missing = {**obj, "metadata": {**obj["metadata"], "name": "missing"}}
    assert not changes.update(missing, removed=True)


def test_only_changes_of_udp_ports_need_a_look_at_connections() -> None:
    changes = EndpointChanges(Family.IPV4, NODE)
    changes.update(endpoint_slice("ns", "svc", P80, at("10.0.0.1")), removed=False)
    assert not changes.apply().has_udp
    dns = endpoint_slice("ns", "dns", {"name": "dns", "port": 53, "protocol": "UDP"}, at("10.0.0.1"))
    changes.update(dns, removed=False)
    assert changes.apply().has_udp
    changes.update(dns, removed=True)
    assert changes.apply().has_udp


def test_the_time_that_caused_a_change_is_reported_once() -> None:
    changes = EndpointChanges(Family.IPV4, NODE)
    obj = endpoint_slice("ns", "svc", P80, at("10.0.0.1"))
    for number, text in enumerate(("2999-01-01T00:00:00Z", "2000-01-01T00:00:00Z", "nonsense")):
        obj["metadata"]["name"] = f"svc-{number}"
        obj["metadata"]["annotations"] = {"endpoints.kubernetes.io/last-change-trigger-time": text}
        changes.update(copy.deepcopy(obj), removed=False)
    assert changes.apply().triggers == [32472144000.0]  # those before the start are not
    assert changes.apply().triggers == []
