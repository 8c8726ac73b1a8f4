"""Tests of metadata validation: upstream's paths, messages and order."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery import metadata
from tetrapod.machinery.names import name_is_dns_subdomain


def create(meta: dict[str, Any], namespaced: bool = False) -> list[str]:
    return [str(e) for e in metadata.validate_object_meta(meta, namespaced, name_is_dns_subdomain)]


def update(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    return [str(e) for e in metadata.validate_object_meta_update({"resourceVersion": "1", **new}, old)]


def test_a_name_is_required() -> None:
    assert create({}) == ["metadata.name: Required value: name or generateName is required"]


def test_a_bad_generate_name_is_reported_beside_the_name() -> None:
    errors = create({"generateName": "Bad_", "name": "Bad_x1"})
    assert [c.split(": ")[0] for c in errors] == ["metadata.generateName", "metadata.name"]


def test_namespaces_belong_to_namespaced_kinds() -> None:
    assert create({"name": "a"}, namespaced=True) == ["metadata.namespace: Required value"]
    assert create({"name": "a", "namespace": "b"}) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_invalid_owner_references_are_rejected() -> None:
    owners = [
        {"kind": "", "uid": ""},
        {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"},
        {"uid": "u1", "controller": True, "apiVersion": "v1", "kind": "Pod", "name": "a"},
        {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "u2", "controller": True},
    ]
    errors = create({"name": "a", "ownerReferences": owners})
    assert errors[:4] == [
        f"metadata.ownerReferences[0].{key}: Required value: must not be empty"
        for key in ("apiVersion", "kind", "name", "uid")
    ]
    assert errors[4].endswith(
        '{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}: /v1, Kind=Event is disallowed from being an owner'
    )
    assert '{"apiVersion":"","kind":"","name":"","uid":""}' in errors[5]
    assert '{"apiVersion":"v1","kind":"Pod","name":"a","uid":"u1","controller":true}' in errors[5]
    assert errors[5].endswith(
        'Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/b'
    )


@pytest.mark.parametrize("version", ["a/b/c", "a/", "/"])
def test_owners_name_a_version_of_a_group(version: str) -> None:
    owner = {"apiVersion": version, "kind": "K", "name": "n", "uid": "u"}
    words = "must be <group>/<version> or <version>"
    assert create({"name": "a", "ownerReferences": [owner]}) == [
        f'metadata.ownerReferences[0].apiVersion: Invalid value: "{version}": {words}'
    ]


def test_finalizers_of_built_in_kinds_need_a_domain() -> None:
    meta = {"name": "b", "finalizers": ["short", "orphan", "foregroundDeletion"]}
    errors = [str(e) for e in metadata.validate_kube_object_meta(meta, False, name_is_dns_subdomain)]
    assert errors == [
        'metadata.finalizers: Invalid value: ["short","orphan","foregroundDeletion"]: '
        "finalizer orphan and foregroundDeletion cannot be both set",
        (
            'metadata.finalizers[0]: Invalid value: "short": name is neither a standard finalizer '
            "name nor is it fully qualified"
        ),
    ]


def test_annotations_are_limited_in_all() -> None:
    complaint = "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert create({"name": "a", "annotations": {"k": "v" * 262143}}) == []
    assert create({"name": "a", "annotations": {"k": "é" * 131072}}) == [complaint]


def test_no_finalizer_is_added_to_a_dying_object() -> None:
    old = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/a"]}
    new = {**old, "finalizers": ["example.com/b", "example.com/a"]}
    assert update(new, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.com/b"}'
    ]


def test_identity_is_immutable() -> None:
    assert update({"name": "b", "uid": "2", "deletionGracePeriodSeconds": 3}, {"name": "a", "uid": "1"}) == [
        'metadata.name: Invalid value: "b": field is immutable',
        'metadata.uid: Invalid value: "2": field is immutable',
        "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
    ]


def test_invalid_managed_fields_are_rejected() -> None:
    entries = [{"operation": "Guess", "fieldsType": "V2", "manager": "a\tb"}]
    assert create({"name": "a", "managedFields": entries}) == [
        'metadata.managedFields[0].operation: Unsupported value: "Guess": supported values: "Apply", "Update"',
        'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
        'metadata.managedFields[0].manager: Invalid value: "a\\tb": invalid character U+0009 (at position 1)',
    ]
