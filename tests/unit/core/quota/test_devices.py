"""Tests of the quota usage of ResourceClaims."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tetrapod.core.quota.claim_context import claim_context
from tetrapod.core.quota.devices import CLAIMS, Extended
from tetrapod.core.quota.usage import counted_names, tracked, usage_of

GOLD, TIN = "gold.deviceclass.resource.k8s.io/devices", "tin.deviceclass.resource.k8s.io/devices"


def device(name: str, count: int = 1, mode: str = "ExactCount") -> Any:
    return {"deviceClassName": name, "allocationMode": mode, "count": count}


@pytest.mark.parametrize(
    ("requests", "gold", "tin"),
    [
        ([{"name": "a", "exactly": device("gold")}], "1", None),
        ([{"name": "a", **device("gold", 3)}], "3", None),  # as v1beta1 says it
        ([{"name": "a", "exactly": device("gold", 2)}, {"name": "b", "exactly": device("gold", 3)}], "5", None),
        ([{"name": "a", "exactly": device("gold", mode="All")}], "32", None),
        ([{"name": "a", "firstAvailable": [device("gold", 2), device("tin", 4), device("gold", 1)]}], "2", "4"),
        ([{"name": "a", "exactly": device("gold", mode="Unknown")}], "0", None),
    ],
)
def test_devices_count_by_class_and_of_alternatives_the_most(requests: Any, gold: str, tin: str | None) -> None:
    used = usage_of(CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})
    assert str(used[GOLD]) == gold
    assert used.get(TIN) is None if tin is None else str(used[TIN]) == tin
    assert str(used["count/resourceclaims.resource.k8s.io"]) == "1"


def test_a_quota_on_devices_counts_claims() -> None:
    names = Extended.of([device_class("gold")])
    implicit = "requests.deviceclass.resource.kubernetes.io/gold"
    assert tracked([GOLD]) == {CLAIMS}
    assert tracked([implicit], names) == {CLAIMS, ("", "pods")}
    assert tracked([implicit]) == {("", "pods")}, "of a class that there is not"


GPUS = "requests.example.com/gpu"
CLAIM: Any = {
    "metadata": {
        "name": "made",
        "namespace": "here",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    },
    "spec": {"devices": {"requests": [{"name": "a", "exactly": device("gold", 3)}]}},
}


def device_class(name: str, extended: str | None = None) -> Any:
    return {"metadata": {"name": name}, "spec": {"extendedResourceName": extended} if extended else {}}


@dataclass
class Cluster:
    """A fake of the cluster around the claim: device classes and other objects."""

    status: Any = None
    uid: str = "u"
    others: tuple[Any, ...] = ()

    async def classes(self) -> list[Any]:
        return [device_class("gold", "example.com/gpu"), device_class("tin")]

    async def pod(self, namespace: str, name: str) -> Any:
        resources = {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}
        meta = {"name": name, "namespace": namespace, "uid": self.uid}
        return {
            "metadata": meta,
            "spec": {"containers": [{"name": "c", "resources": resources}]},
            "status": self.status or {},
        }

    async def claims(self, namespace: str) -> list[Any]:
        return [CLAIM, *self.others]


def of_the_pod(name: str, created: str = "2026-01-01T00:00:00Z") -> Any:
    return {**CLAIM, "metadata": {**CLAIM["metadata"], "name": name, "creationTimestamp": created}}


@pytest.mark.parametrize(
    ("claim", "cluster", "devices"),
    [
        ({**CLAIM, "metadata": {"name": "own", "namespace": "here"}}, Cluster(), "3"),
        (CLAIM, Cluster(), "1"),
        (CLAIM, Cluster(status={"extendedResourceClaimStatus": {"resourceClaimName": "made"}}), "1"),
        (CLAIM, Cluster(status={"extendedResourceClaimStatus": {"resourceClaimName": "other"}}), "3"),
        (CLAIM, Cluster(uid="a pod of the same name"), "3"),
        (CLAIM, Cluster(others=(of_the_pod("later", "2026-01-01T00:00:01Z"), of_the_pod("z"))), "1"),
        (CLAIM, Cluster(others=(of_the_pod("a"),)), "3"),
    ],
)
def test_a_claim_of_a_pod_is_charged_for_what_its_pod_does_not_request(
    claim: Any, cluster: Cluster, devices: str
) -> None:
    context = asyncio.run(claim_context(claim, cluster))
    used = usage_of(CLAIMS, claim, context)
    assert str(used[GPUS]) == devices
    assert str(used[GOLD]) == "3"
    assert counted_names(CLAIMS, {GPUS}, context) == [GPUS]
