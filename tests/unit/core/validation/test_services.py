"""Services: what belongs to which type, and IP families."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.strategies.service_families import settle_families
from tetrapod.core.validation import services
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
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "ns"}, "spec": {**whole, **spec}}


def fields(obj: Object) -> list[str]:
    return [error.field for error in services.validate(obj)]


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
def test_refusals(spec: Object, wanted: list[str]) -> None:
    assert fields(service(**spec)) == wanted


def test_one_family_is_all_that_a_single_stack_cluster_gives() -> None:
    assert settle_families({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"}, "IPv4")
    assert settle_families({"type": "ClusterIP", "ipFamilies": ["IPv6"]}, "IPv4")
    spec: Object = {"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"}
    assert settle_families(spec, "IPv4") == []
    assert spec["ipFamilies"] == ["IPv4"]
