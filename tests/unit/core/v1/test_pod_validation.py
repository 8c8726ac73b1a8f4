"""Tests of pod validation and of which fields an update may change.

The wording is compared, since clients show it to users.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tetrapod.core.podspec.qos import qos_class
from tetrapod.core.v1.pods import status_validation, validation
from tetrapod.core.v1.pods.defaults import default_pod_resources_after_admission, set_defaults
from tetrapod.machinery.gvk import Object


def pod(**spec: Any) -> Object:
    obj: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec},
    }
    set_defaults(obj)
    return obj


def texts(obj: Object) -> list[str]:
    return [str(error) for error in validation.validate(obj)]


def test_a_simple_pod_is_valid() -> None:
    assert texts(pod()) == []


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        (
            {"restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        (
            {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/a"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            },
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"nodeName": "n", "schedulingGates": [{"name": "example.com/g"}]},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
    ],
)
def test_an_invalid_pod_has_exactly_one_error(spec: Object, error: str) -> None:
    assert texts(pod(**spec)) == [error]


def test_a_change_is_shown_as_a_difference() -> None:
    old, new = pod(), pod()
    new["spec"]["dnsPolicy"] = "Default"
    (error,) = validation.validate_update(new, old)
    text = str(error)
    assert text.startswith("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")
    assert '- "DNSPolicy": "ClusterFirst",\n+ "DNSPolicy": "Default",\n' in text


def test_mutable_fields_can_be_updated() -> None:
    old, new = pod(), pod()
    new["spec"]["containers"][0]["image"] = "nginx:2"
    new["spec"]["activeDeadlineSeconds"] = 5
    new["spec"]["tolerations"] = [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]
    assert validation.validate_update(new, old) == []
    later = deepcopy(new)
    later["spec"]["activeDeadlineSeconds"] = 6
    assert [e.field for e in validation.validate_update(later, new)] == ["spec.activeDeadlineSeconds"]
    later = deepcopy(new)
    later["spec"]["tolerations"] = []
    assert [e.field for e in validation.validate_update(later, new)] == ["spec.tolerations"]


def test_scheduling_gates_can_only_be_removed() -> None:
    gated = pod(schedulingGates=[{"name": "example.com/a"}])
    assert validation.validate_update(pod(), gated) == []
    assert [e.field for e in validation.validate_update(gated, pod())] == ["spec.schedulingGates[0].name"]


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1G"}}, "Burstable"),
    ],
)
def test_qos_class_follows_requests_and_limits(resources: Object, wanted: str) -> None:
    assert qos_class({"containers": [{"name": "c", "resources": resources}]}) == wanted


def test_a_pod_asks_for_what_its_containers_do_or_its_limits_allow() -> None:
    spec: Object = {
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "200m"}}},
            {"name": "b", "resources": {"requests": {"cpu": "300m"}}},
        ],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    }
    default_pod_resources_after_admission(spec)
    assert spec["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_a_pod_whose_first_address_is_empty_has_none() -> None:
    new: Object = {"metadata": {}, "spec": {}, "status": {"podIPs": [{}, {"ip": "1.2.3.4"}], "podIP": ""}}
    found = [
        error.detail
        for error in status_validation.validate_status(new, {"metadata": {}})
        if error.field == "status.podIPs"
    ]
    assert found[-1] == "podIP and podIPs must either both be set or both be unset"
