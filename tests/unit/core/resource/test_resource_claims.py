"""Tests of the validation of ResourceClaims and ResourceClaimTemplates."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.resource import resource_claim_templates
from tetrapod.core.resource.device_rules import fully_qualified, json_object
from tetrapod.core.resource.resource_claims import status_validation as claim_status
from tetrapod.core.resource.resource_claims import validation as resource_claims
from tetrapod.machinery.gvk import Object


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("a.b/c", []),
        ("a/b/c", []),  # upstream validates names with at most one slash
        ("/c", ["prefix must not be empty"]),
        ("a.b/", ["name must not be empty"]),
        ("plain", ["a fully qualified name must be a domain and a name separated by a slash"]),
        ("a.b/" + "c" * 33, ["may not be more than 32 bytes"]),
    ],
)
def test_attributes_are_named_behind_a_domain(name: str, messages: list[str]) -> None:
    assert [error.detail for error in fully_qualified(name, "p")] == messages


@pytest.mark.parametrize(
    ("value", "stored", "rejected"),
    [
        ({"a": 1}, False, False),
        (None, True, True),
        ([1], False, True),
        ({"a": "x" * 10300}, False, True),
        ({"a": "x" * 10300}, True, False),
    ],
)
def test_driver_parameters_are_limited_to_ten_kilobytes_unless_unchanged(
    value: Any, stored: bool, rejected: bool
) -> None:
    assert bool(json_object(value, "p", stored=stored)) is rejected


def test_too_many_requests_are_reported_by_number_only() -> None:
    requests = [{"name": "same", "exactly": {}} for _ in range(33)]
    errors = resource_claims.validate({"metadata": {}, "spec": {"devices": {"requests": requests}}})
    assert [(error.field, error.detail) for error in errors] == [
        ("spec.devices.requests", "must have at most 32 items")
    ]


def test_addresses_of_devices_are_canonical_and_unique() -> None:
    network = {"ips": ["10.0.0.1", "10.0.0.01/24", "10.0.0.1/24", "10.0.0.1/24"]}
    claim: Object = {
        "metadata": {},
        "status": {"devices": [{"driver": "d.e", "pool": "p", "device": "d", "networkData": network}]},
    }
    fields = [error.field for error in claim_status.validate_status(claim, {"metadata": {}})]
    assert [path.rpartition(".")[2] for path in fields if "ips" in path] == ["ips[0]", "ips[1]", "ips[3]"]


def test_a_claim_template_hands_on_labels_and_annotations_only() -> None:
    template: Object = {"spec": {"metadata": {"name": "x", "labels": {"a b": "c"}, "finalizers": ["f"]}, "spec": {}}}
    found = [(error.field, error.type) for error in resource_claim_templates.validate(template)]
    assert found == [
        ("spec.metadata.labels", "FieldValueInvalid"),
        ("spec.metadata.name", "FieldValueForbidden"),
        ("spec.metadata.finalizers", "FieldValueForbidden"),
    ]


def test_a_changed_claim_template_is_shown_as_the_original_has_it_in_memory() -> None:
    old: Object = {"spec": {"spec": {}}}
    new: Object = {
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"config": [{"opaque": {"driver": "d"}}]}}}
    }
    (error,) = (e for e in resource_claim_templates.validate_update(new, old) if e.field == "spec")
    config = [{"Requests": None, "Opaque": {"Driver": "d", "Parameters": None}}]
    assert error.value == {
        "labels": {"a": "b"},
        "Spec": {"Devices": {"Requests": None, "Constraints": None, "Config": config}},
    }


def test_a_changed_claim_template_is_judged_as_a_new_one_too() -> None:
    old: Object = {"spec": {"spec": {}}}
    new: Object = {"spec": {"spec": {"devices": {"constraints": [{"requests": ["a"], "matchAttribute": "a.b/c"}]}}}}
    found = [error.field for error in resource_claim_templates.validate_update(new, old)]
    assert found == ["spec.spec.devices.constraints[0].requests[0]", "spec"]
