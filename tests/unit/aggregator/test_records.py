"""Snapshots of APIServices, and the order of discovery."""

from __future__ import annotations

from tetrapod.aggregator.priorities import priorities
from tetrapod.aggregator.routing import Records
from tetrapod.machinery.gvk import GroupVersion
from unit.aggregator.objects import api_service

RECORDED = [
    "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
    "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io", "storagemigration.k8s.io",
]  # fmt: skip


def test_groups_have_the_recorded_order() -> None:
    records = Records()
    for group in sorted(RECORDED):
        priority, order = priorities(GroupVersion(group, "v1")) or (0, 0)
        records.changed(None, api_service(group, priority=priority, order=order))
    records.changed(None, api_service("zzz.example.com"))
    records.changed(None, api_service("aaa.example.com"))
    assert [group for group, _ in records.groups] == [*RECORDED, "aaa.example.com", "zzz.example.com"]


def test_groups_of_equal_priority_are_ordered_by_apiservice_name() -> None:
    records = Records()
    for group, version in (("a", "v1beta1"), ("b", "v1"), ("c", "v1alpha1"), ("c", "v2")):
        records.changed(None, api_service(group, version))
    assert [group for group, _ in records.groups] == ["b", "c", "a"]


def test_versions_are_ordered_by_priority_then_by_stability() -> None:
    records = Records()
    for version, order in (("v1beta1", 100), ("v1", 100), ("v2alpha1", 100), ("v9", 1), ("v0", 200)):
        records.changed(None, api_service("g", version, order=order))
    assert [obj["spec"]["version"] for obj in records.groups[0][1]] == ["v0", "v1", "v1beta1", "v2alpha1", "v9"]
    for version in ("v01", "x9", "v99999999999999999999", "v0alpha0", "a"):
        records.changed(None, api_service("h", version, order=100))
    assert [obj["spec"]["version"] for obj in dict(records.groups)["h"]] == [
        "v01",
        "v0alpha0",
        "a",
        "v99999999999999999999",
        "x9",
    ]
    assert priorities(GroupVersion("autoscaling", "v2")) == (17500, 30)


def test_only_services_are_external() -> None:
    records = Records()
    records.changed(None, api_service("local"))
    records.changed(None, api_service("external", service={}))
    assert list(records.external) == [("external", "v1")]
    assert records.names_for_service("ns", "api") == ["v1.external"]


def test_a_deletion_that_is_reported_twice_does_not_take_the_successor() -> None:
    records = Records()
    old = api_service("g")
    records.changed(None, old)
    records.removed("v1.g")
    new = api_service("g") | {"metadata": {"name": "v1.g", "uid": "another"}}
    records.changed(None, new)
    records.changed(old, None)
    assert records.get("v1.g") is new
