"""Tests of APIService validation. The expected results were recorded from a real server."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.aggregator.registration.strategy import APIServiceStatusStrategy, APIServiceStrategy
from tetrapod.aggregator.registration.validation import validate_api_service, validate_status
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object

GOOD = {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
SERVICE = {"namespace": "x", "name": "y", "port": 443}


def texts(spec: Object, **metadata: str) -> list[str]:
    name = f"{spec.get('version', '')}.{spec.get('group', '')}"
    return [str(e) for e in validate_api_service({"metadata": metadata or {"name": name}, "spec": spec})]


def test_a_name_is_version_and_group() -> None:
    wrong = 'must be `spec.version+"."+spec.group`: "v1.g.example.com"'
    assert texts(GOOD, name="x") == [f'metadata.name: Invalid value: "x": {wrong}']
    assert texts(GOOD, name="v1.abcde", generateName="v1.") == [
        f'metadata.generateName: Invalid value: "v1.": {wrong}',
        f'metadata.name: Invalid value: "v1.abcde": {wrong}',
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"groupPriorityMinimum": 20000, "versionPriority": 1000}, []),
        (
            {"groupPriorityMinimum": 20001},
            ["spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000"],
        ),
        ({"versionPriority": -1}, ["spec.versionPriority: Invalid value: -1: must be positive and less than 1000"]),
        (
            {"group": "", "version": "v2"},
            ["spec.group: Required value: only v1 may have an empty group and it better be legacy kube"],
        ),
        ({"service": {}}, ["spec.service.namespace: Required value", "spec.service.name: Required value"]),
        (
            {"service": SERVICE | {"port": 65536}},
            ["spec.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive"],
        ),
        (
            {"caBundle": "YWJj", "insecureSkipTLSVerify": True},
            [
                'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle',
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ],
        ),
        (
            {"caBundle": "YWJj", "insecureSkipTLSVerify": True, "service": SERVICE},
            ["spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"],
        ),
        ({"service": {"namespace": "Not A Name", "name": "../..", "port": 65535}, "caBundle": "Z2FyYmFnZQ=="}, []),
    ],
)
def test_invalid_specs_are_rejected(change: Object, expected: list[str]) -> None:
    assert texts(GOOD | change) == expected


def test_condition_statuses_are_validated() -> None:
    errors = validate_status({"status": {"conditions": [{"type": "Extra", "status": "Maybe"}]}})
    wanted = 'status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"'
    assert [str(e) for e in errors] == [wanted]


def test_a_local_apiservice_is_available_from_the_start() -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "x"},
        "spec": dict(GOOD),
        "status": {"conditions": [{"type": "Mine", "status": "True"}]},
    }
    APIServiceStrategy().prepare_for_create(Context(), obj)
    (condition,) = obj["status"]["conditions"]
    assert (condition["reason"], condition["status"]) == ("Local", "True")


def test_the_port_of_a_service_defaults_to_443() -> None:
    obj: dict[str, Any] = {"metadata": {}, "spec": GOOD | {"service": {"namespace": "x", "name": "y"}}}
    APIServiceStrategy().default(obj, "v1")
    assert obj["spec"]["service"]["port"] == 443


def test_a_status_update_changes_nothing_else() -> None:
    old: Object = {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": dict(GOOD), "status": {}}
    new: Object = {
        "metadata": {"name": "x", "labels": {"mine": "1"}},
        "spec": {},
        "status": {"conditions": [{"type": "E", "status": "True"}]},
    }
    APIServiceStatusStrategy(APIServiceStrategy()).prepare_for_update(Context(), new, old)
    assert (new["metadata"]["labels"], new["spec"]) == ({"a": "b"}, GOOD)
    assert new["status"]["conditions"] == [{"type": "E", "status": "True", "lastTransitionTime": None}]
