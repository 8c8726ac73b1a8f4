"""Tests of the quota usage of pods, and of when a pod stops being counted."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.quota.pods import counts_as_pod, pod_totals, unspecified_resources
from tetrapod.core.quota.replenishing import may_decrease_usage
from tetrapod.core.quota.usage import counted_names
from tetrapod.generic.admission.quota import growth
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.quantity import Quantity

PODS = GroupResource("", "pods")


def pod(requests: Any = None, *, status: Any = None, **spec: Any) -> Any:
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}, "status": status or {}}


def has(requests: Any, allocated: Any = None) -> Any:
    return {
        "containerStatuses": [
            {"name": "c", "resources": {"requests": requests}, "allocatedResources": allocated or requests}
        ]
    }


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, "2"),
        (has({"cpu": "1"}), "2"),
        (has({"cpu": "3"}), "3"),
        (has({"cpu": "1"}, {"cpu": "4"}), "4"),
        ({**has({"cpu": "1"}), "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}, "1"),
        ({**has({"cpu": "1"}), "conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}, "2"),
    ],
)
def test_a_pod_uses_the_maximum_of_requested_and_allocated_resources(status: Any, cpu: str) -> None:
    assert str(pod_totals(pod({"cpu": "2"}, status=status))[0]["cpu"]) == cpu


def test_containers_need_no_resources_that_the_pod_specifies() -> None:
    assert unspecified_resources(pod(), ["cpu", "memory"]) == "cpu for: c; memory for: c"
    assert unspecified_resources(pod(resources={"requests": {"cpu": "1"}}), ["cpu", "memory"]) == ""
    assert unspecified_resources(pod(resources={"requests": {"example.com/gpu": "1"}}), ["cpu"]) == "cpu for: c"


def test_terminated_pods_are_not_counted() -> None:
    gone = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}}
    going = {"metadata": {"deletionTimestamp": "2999-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}}
    assert (counts_as_pod(gone), counts_as_pod(going)) == (False, True)


@pytest.mark.parametrize(
    ("resource", "old", "new", "expected"),
    [
        (PODS, pod(), pod(), False),
        (PODS, pod(), pod(activeDeadlineSeconds=5), True),
        (PODS, pod(), pod(status={"phase": "Failed"}), True),
        (PODS, pod(status=has({"cpu": "2"})), pod(status=has({"cpu": "1"})), True),
        (PODS, pod(), pod(status=has({"cpu": "1"})), False),
        (PODS, pod(status=has({"cpu": "1"})), pod(), False),
        (PODS, pod(status=has({"cpu": "1"})), pod(status=has({"cpu": "1"}, {"cpu": "2"})), False),
        (GroupResource("", "services"), {"spec": {"type": "NodePort"}}, {"spec": {"type": "ClusterIP"}}, True),
        (GroupResource("", "services"), {"spec": {"type": "ExternalName"}}, {"spec": {"type": "ClusterIP"}}, False),
        (GroupResource("", "secrets"), {}, {"data": {}}, False),
    ],
)
def test_updates_that_change_quota_usage(resource: GroupResource, old: Any, new: Any, expected: bool) -> None:
    assert may_decrease_usage(resource, old, new) is expected


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        ("pods", ["count/pods", "hugepages-2Mi", "limits.memory", "pods", "requests.cpu", "requests.example.com/gpu"]),
        ("services", ["services.nodeports"]),
        ("persistentvolumeclaims", ["gold.storageclass.storage.k8s.io/requests.storage", "requests.storage"]),
        ("configmaps", ["configmaps"]),
        ("endpoints", []),
    ],
)
def test_a_quota_applies_to_objects_of_its_resource_names(resource: str, names: list[str]) -> None:
    every = {
        "count/pods",
        "hugepages-2Mi",
        "limits.memory",
        "pods",
        "requests.cpu",
        "requests.example.com/gpu",
        "services.nodeports",
    }
    every |= {
        "gold.storageclass.storage.k8s.io/requests.storage",
        "requests.storage",
        "configmaps",
        "count/deployments.apps",
    }
    assert counted_names(GroupResource("", resource), every) == names


def test_only_increases_are_charged() -> None:
    one, two = Quantity.from_int(1), Quantity.from_int(2)
    assert growth({"a": two, "b": one, "c": one}, {"a": one, "b": two}) == {"a": one, "c": one}
