"""Tests that validation takes time linear in the lists of an object, also if their elements repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.growth import assert_linear
from tetrapod.core.admissionregistration import (
    validating_admission_policies,
    validating_admission_policy_bindings,
    webhook_configurations,
)
from tetrapod.core.batch.jobs import policies as job_policies
from tetrapod.core.certificates.certificate_signing_requests import validation as signing_requests
from tetrapod.core.flowcontrol import flow_schemas
from tetrapod.core.node import runtime_classes
from tetrapod.core.podspec import scheduling
from tetrapod.core.podspec.resources import container_resources
from tetrapod.core.resource import device_rules as devices
from tetrapod.core.resource.resource_claims import status_validation as claim_status
from tetrapod.core.resource.resource_slices import devices as slice_devices
from tetrapod.core.storage import csi_nodes
from tetrapod.core.v1.nodes import validation
from tetrapod.core.v1.pods import validation as pods_validation
from tetrapod.core.v1.services import address_validation
from tetrapod.machinery import metadata
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.gvk import Object


def names(size: int) -> list[str]:
    return [f"a{i}" for i in range(size)]


def policy(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail", "matchConstraints": {}, **spec}}


def conditions(size: int) -> Object:
    return {"status": {"conditions": [{"type": name, "status": "True"} for name in names(size)]}}


def claim(size: int) -> Object:
    results = [{"driver": "d.io", "pool": "p", "device": name, "request": "r"} for name in names(size)]
    listed = [{"driver": "d.io", "pool": "p", "device": name} for name in names(size)]
    users = [{"resource": "pods", "name": name, "uid": name} for name in names(size)]
    return {
        "metadata": {"name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"allocation": {"devices": {"results": results}}, "devices": listed, "reservedFor": users},
    }


def webhook_rules(size: int) -> Object:
    rule = {
        "apiGroups": names(size),
        "apiVersions": names(size),
        "resources": names(size),
        "operations": ["CREATE"] * size,
    }
    return {
        "metadata": {"name": "w"},
        "webhooks": [{"name": "a.b.c", "admissionReviewVersions": names(size), "rules": [rule]}],
    }


CASES: dict[str, tuple[Callable[[Any], object], Callable[[int], Any]]] = {
    "variables": (
        validating_admission_policies.validate,
        lambda n: policy(variables=[{"name": name, "expression": "1"} for name in names(n)]),
    ),
    "audit annotations": (
        validating_admission_policies.validate,
        lambda n: policy(auditAnnotations=[{"key": name, "valueExpression": "'a'"} for name in names(n)]),
    ),
    "validation actions": (
        validating_admission_policy_bindings.validate,
        lambda n: {"metadata": {"name": "b"}, "spec": {"validationActions": names(n)}},
    ),
    "resource names of policies": (
        validating_admission_policies.validate,
        lambda n: policy(matchConstraints={"resourceRules": [{"resourceNames": names(n)}]}),
    ),
    "webhooks": (webhook_configurations.validate, webhook_rules),
    "reviewed versions": (
        webhook_configurations.validate,
        lambda n: {"metadata": {"name": "w"}, "webhooks": [{"name": "a.b.c", "admissionReviewVersions": names(n)}]},
    ),
    "tolerations of a class": (
        runtime_classes.validate,
        lambda n: {"metadata": {"name": "r"}, "scheduling": {"tolerations": [{"key": name} for name in names(n)]}},
    ),
    "topology spread": (
        lambda given: scheduling.spread(given, "spec"),
        lambda n: [{"topologyKey": name, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1} for name in names(n)],
    ),
    "tolerations of a pod": (
        lambda given: pods_validation._tolerations(given, given[::-1]),
        lambda n: [{"key": name, "operator": "Exists"} for name in names(n)],
    ),
    "addresses of a node": (
        lambda given: validation.validate_status(given, {}),
        lambda n: {
            "metadata": {},
            "status": {"addresses": [{"type": "Hostname", "address": name} for name in names(n)]},
        },
    ),
    "a claim": (lambda given: claim_status.validate_status(given, claim(2)), claim),
    "topology keys": (
        csi_nodes.validate,
        lambda n: {
            "metadata": {"name": "n"},
            "spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": names(n)}]},
        },
    ),
    "conditions of a flow schema": (lambda given: flow_schemas.validate_status(given, {}), conditions),
    "conditions of a signing request": (
        lambda given: signing_requests._conditions(given, given),
        lambda n: conditions(n)["status"]["conditions"],
    ),
    "exit codes": (
        lambda given: job_policies._exit_codes(given, "path", set()),
        lambda n: {"operator": "In", "values": list(range(1, n))},
    ),
    "families": (
        lambda given: address_validation.addresses_and_families(given, {}),
        lambda n: {"ipFamilies": names(n)},
    ),
    "devices": (
        lambda given: slice_devices.check_devices(given, None, devices.ErrorLists()),
        lambda n: {"driver": "d", "devices": [{"name": name} for name in names(n)]},
    ),
    "binding conditions": (
        lambda given: devices.binding(given, "path", devices.ErrorLists()),
        lambda n: {"bindingConditions": names(n), "bindingFailureConditions": names(n)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_validation_is_linear(case: str) -> None:
    assert_linear(*CASES[case])


def test_many_controllers_among_owner_references_need_linear_time() -> None:
    """Each error quotes all owners.

    With a list of them for each error, a request of three megabytes took 20 GB of memory.
    """

    def owners(size: int) -> list[dict[str, Any]]:
        return [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in names(size)
        ]

    assert_linear(lambda given: metadata.validate_owner_references(given, "metadata.ownerReferences"), owners, size=64)


def test_repeated_values_are_found() -> None:
    assert repeated(["a", "b", "a", "a"]) == {2, 3}
    assert repeated([{"a": 1, "b": [1]}, {"b": [1], "a": 1}, {"a": 1}]) == {1}


def test_claims_of_a_container_are_compared_in_linear_time() -> None:
    compared = listed = 0

    class Name(str):
        __slots__ = ()

        def startswith(self, *arguments: Any) -> bool:
            nonlocal compared
            compared += 1
            return super().startswith(*arguments)

    class Known(set[str]):
        def __iter__(self) -> Iterator[str]:
            nonlocal listed
            listed += 1
            return super().__iter__()

    many = 2_000
    claims = [{"name": Name(f"c{i}")} for i in range(many)]
    errors = container_resources({"claims": claims}, Known({"a"}), "resources")
    assert [error.type for error in errors] == ["FieldValueNotFound"] * many
    assert compared == 0
    assert listed <= 1


def test_a_claim_and_its_requests_are_duplicates_of_each_other() -> None:
    claims = [{"name": "a", "request": "x"}, {"name": "a", "request": "y"}, {"name": "a"}, {"name": "a"}]
    errors = container_resources({"claims": claims}, {"a"}, "resources")
    assert [(error.type, error.field) for error in errors] == [
        ("FieldValueDuplicate", "resources.claims[2]"),
        ("FieldValueDuplicate", "resources.claims[2]"),
        ("FieldValueDuplicate", "resources.claims[3]"),
    ]
