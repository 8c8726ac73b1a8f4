"""Checks that an object of any kind and content is unchanged after a round trip through protobuf."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.types import schema_for
from unit.machinery.protobuf.values import objects

KINDS = [
    GroupVersionKind("", "v1", "Pod"),
    GroupVersionKind("", "v1", "Secret"),
    GroupVersionKind("", "v1", "Event"),
    GroupVersionKind("", "v1", "PersistentVolume"),
    GroupVersionKind("", "v1", "Service"),
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("apps", "v1", "ControllerRevision"),
    GroupVersionKind("batch", "v1", "CronJob"),
    GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
    GroupVersionKind("coordination.k8s.io", "v1", "Lease"),
    GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy"),
    GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice"),
    GroupVersionKind("authorization.k8s.io", "v1", "SubjectAccessReview"),
    GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    GroupVersionKind("apiregistration.k8s.io", "v1", "APIService"),
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
]


def stored(obj: Object, kind: GroupVersionKind) -> Object:
    """Return the form in which endpoints process an object."""
    typed.decode(schema_for(kind), obj)
    return obj


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_objects_come_back_as_they_were(kind: GroupVersionKind, data: st.DataObject) -> None:
    obj = stored(data.draw(objects(kind)), kind)
    before = copy.deepcopy(obj)
    body = protobuf.encode(obj)
    assert obj == before, "encoding changes nothing"
    assert stored(protobuf.decode(body, kind), kind) == obj


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), where=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_damaged_body_is_decoded_or_rejected(
    kind: GroupVersionKind, data: st.DataObject, where: float, byte: int
) -> None:
    body = bytearray(protobuf.encode(stored(data.draw(objects(kind)), kind)))
    body[int(where * (len(body) - 1))] = byte
    for given_body in (bytes(body), bytes(body[: int(where * len(body))])):
        try:
            found = protobuf.decode(given_body, kind)
        except protobuf.DecodeError:
            continue
        assert isinstance(found, dict)
