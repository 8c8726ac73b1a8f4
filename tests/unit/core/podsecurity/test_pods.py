"""Tests of which pod updates are evaluated, where pod templates are found, and the warnings about existing pods."""

from __future__ import annotations

import copy

import pytest

from tetrapod.core.podsecurity.existing import Findings, by_priority
from tetrapod.core.podsecurity.pods import is_significant_update, template_of
from tetrapod.core.podsecurity.policy import LevelVersion
from tetrapod.machinery.gvk import Object

POD: Object = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "i", "image": "x"}]},
}


def changed(**spec: object) -> Object:
    pod = copy.deepcopy(POD)
    pod["spec"].update(spec)
    return pod


def test_only_images_and_ephemeral_containers_make_an_update_significant() -> None:
    assert not is_significant_update(POD | {"metadata": {"labels": {"a": "b"}}}, POD)
    assert not is_significant_update(changed(activeDeadlineSeconds=3), POD)
    assert is_significant_update(changed(containers=[{"name": "a", "image": "y"}]), POD)
    assert is_significant_update(changed(initContainers=[{"name": "i", "image": "y"}]), POD)
    debugged = changed(ephemeralContainers=[{"name": "d", "image": "x"}])
    assert is_significant_update(debugged, POD)
    assert not is_significant_update(debugged, debugged)


@pytest.mark.parametrize(
    ("group", "resource", "obj"),
    [
        ("", "podtemplates", {"template": {"spec": {}}}),
        ("apps", "deployments", {"spec": {"template": {"spec": {}}}}),
        ("batch", "cronjobs", {"spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}),
    ],
)
def test_pod_templates_are_found_in_workloads(group: str, resource: str, obj: Object) -> None:
    assert template_of(group, resource, obj) == {"spec": {}}


def test_a_replication_controller_may_have_no_template() -> None:
    assert template_of("", "replicationcontrollers", {"spec": {}}) is None


def test_existing_pods_are_reported_sorted_and_grouped() -> None:
    findings = Findings()
    for pod, why in [("plain1", "b"), ("plain0", "b"), ("z", "a"), ("plain2", "b"), ("y", "a"), ("only", "c, d")]:
        findings.add(pod, why)
    assert findings.warnings("n", LevelVersion("restricted", "latest"), 6, 6) == [
        'existing pods in namespace "n" violate the new PodSecurity enforce level "restricted:latest"',
        "only: c, d",
        "plain0 (and 2 other pods): b",
        "y (and 1 other pod): a",
    ]
    assert Findings().warnings("n", LevelVersion("baseline", "latest"), 0, 0) == []
    assert Findings().warnings("n", LevelVersion("baseline", "latest"), 3, 5) == [
        "new PodSecurity enforce level only checked against the first 3 of 5 existing pods"
    ]


def test_one_pod_of_each_controller_comes_first() -> None:
    def pod(name: str, controller: str = "", runtime: str = "") -> Object:
        owners = [{"uid": "other"}, *([{"uid": controller, "controller": True}] if controller else [])]
        return {
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"runtimeClassName": runtime} if runtime else {},
        }

    pods = [pod("a0", "a"), pod("a1", "a"), pod("b0", "b"), pod("lone"), pod("lone2"), pod("exempt", runtime="kata")]
    assert [each["metadata"]["name"] for each in by_priority(pods, {"kata"})] == ["a0", "b0", "lone", "lone2", "a1"]
