"""Tests of Service validation: which fields belong to which type, and IP families."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.v1.services import validation
from tetrapod.core.v1.services.changes import drop_unused, patch_allocated
from tetrapod.core.v1.services.ip_families import set_ip_families
from tetrapod.machinery.gvk import Object


def service(**spec: Any) -> Object:
    whole = {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "ns"},
        "spec": {**whole, **spec},
    }


def fields(obj: Object) -> list[str]:
    return [error.field for error in validation.validate(obj)]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, []),
        ({"ports": []}, ["spec.ports"]),
        ({"ports": [], "clusterIP": "None", "clusterIPs": ["None"]}, []),
        ({"ports": [{"port": 0, "protocol": "TCP", "targetPort": 80}]}, ["spec.ports[0].port"]),
        ({"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30000}]}, ["spec.ports[0].nodePort"]),
        (
            {"ports": [{"port": p, "protocol": "TCP", "targetPort": p} for p in (1, 2)]},
            ["spec.ports[0].name", "spec.ports[1].name"],
        ),
        ({"sessionAffinity": "Forever"}, ["spec.sessionAffinity"]),
        ({"externalIPs": ["127.0.0.1"], "externalTrafficPolicy": "Cluster"}, ["spec.externalIPs[0]"]),
    ],
)
def test_errors_name_the_invalid_fields(spec: Object, wanted: list[str]) -> None:
    assert fields(service(**spec)) == wanted


def test_one_family_is_all_that_a_single_stack_cluster_gives() -> None:
    assert set_ip_families({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"}, None, ["IPv4"])
    assert set_ip_families({"type": "ClusterIP", "ipFamilies": ["IPv6"]}, None, ["IPv4"])
    spec: Object = {"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"}
    assert set_ip_families(spec, None, ["IPv4"]) == []
    assert spec["ipFamilies"] == ["IPv4"]


def test_a_second_family_is_given_up_by_asking_for_a_single_stack() -> None:
    before = {"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4", "IPv6"]}
    before["ipFamilyPolicy"] = "RequireDualStack"
    spec: Object = {**before, "ipFamilies": ["IPv4"]}
    assert [error.field for error in set_ip_families(spec, before, ["IPv4"])] == ["spec.ipFamilyPolicy"]
    spec = {**before, "ipFamilyPolicy": "SingleStack"}
    assert set_ip_families(spec, before, ["IPv4"]) == []
    assert spec["ipFamilies"] == ["IPv4"]


def test_node_ports_are_kept_by_the_names_of_ports() -> None:
    before = service(
        type="NodePort",
        ports=[{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 81, "nodePort": 30081}],
    )
    after = service(
        type="NodePort",
        ports=[{"name": "b", "port": 80}, {"name": "c", "port": 81}, {"name": "d", "port": 82, "nodePort": 30080}],
    )
    patch_allocated(after, before)
    assert [port.get("nodePort") for port in after["spec"]["ports"]] == [30081, None, 30080]


def test_a_change_of_type_drops_what_was_not_changed_with_it() -> None:
    before = service(
        type="LoadBalancer",
        externalTrafficPolicy="Local",
        healthCheckNodePort=30001,
        allocateLoadBalancerNodePorts=True,
    )
    before["spec"]["ports"] = [{"name": "a", "port": 80, "nodePort": 30080}]
    after = service(**{**before["spec"], "type": "ClusterIP", "ports": [{"name": "z", "port": 1, "nodePort": 30080}]})
    drop_unused(after, before)
    assert after["spec"] == service(ports=[{"name": "z", "port": 1}])["spec"]
    assert after["status"] == {"loadBalancer": {}}
    after = service(
        **{
            **before["spec"],
            "type": "ClusterIP",
            "healthCheckNodePort": 30002,
            "ports": [{"port": 80, "nodePort": 30090}],
        }
    )
    drop_unused(after, before)
    assert after["spec"]["healthCheckNodePort"] == 30002
    assert after["spec"]["ports"] == [{"port": 80, "nodePort": 30090}]
