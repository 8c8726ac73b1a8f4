"""Tests of protobuf responses built from encoded objects: envelopes, lists, watch frames and documents."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.protobuf.messages import fields

NONE = GroupVersionKind("", "", "")


def test_the_envelope_is_as_go_writes_it() -> None:
    found = protobuf.encode({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "b"}})
    assert found == b'k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x08\x12\x06\n\x01a\x12\x01b\x1a\x00"\x00'


def test_a_list_is_made_of_items() -> None:
    message = protobuf.message_of("v1", "ConfigMap")
    items = [protobuf.item(message, {"kind": "ConfigMap", "metadata": {"name": name}}) for name in ("a", "b")]
    head, parts, tail = protobuf.list_parts(
        "v1", "ConfigMapList", {"resourceVersion": "7", "remainingItemCount": 0}, items
    )
    assert protobuf.decode(b"".join((head, *parts, tail)), NONE) == {
        "apiVersion": "v1",
        "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "7", "remainingItemCount": 0},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    }


def test_a_former_list_of_metadata_has_other_numbers() -> None:
    item = protobuf.item(protobuf.message_of("meta.k8s.io/v1", "PartialObjectMetadata"), {"metadata": {"name": "a"}})
    for version in ("v1", "v1beta1"):
        api_version = f"meta.k8s.io/{version}"
        head, parts, tail = protobuf.list_parts(
            api_version, "PartialObjectMetadataList", {"resourceVersion": "7"}, [item]
        )
        found = protobuf.decode(b"".join((head, *parts, tail)), NONE)
        assert found["items"] == [{"metadata": {"name": "a"}}]
        assert found["metadata"] == {"resourceVersion": "7"}


def test_a_frame_says_how_long_it_is() -> None:
    enveloped = protobuf.encode({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x" * 200}})
    frame = protobuf.frame("ADDED", enveloped)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:].startswith(b"\x0a\x05ADDED\x12")
    assert frame.endswith(enveloped)


@pytest.mark.parametrize("kind", ["APIVersions", "APIGroup", "APIGroupList", "APIResourceList", "Status"])
def test_documents_of_no_group(kind: str) -> None:
    for api_version in ("v1", ""):
        assert fields(protobuf.message_of(api_version, kind))


def test_kinds_without_a_message_raise_a_distinct_error() -> None:
    for api_version, kind in (("example.com/v1", "Widget"), ("v1", "Table"), ("meta.k8s.io/v1", "Table"), ("", "Info")):
        with pytest.raises(protobuf.UnknownMessageError):
            protobuf.encode({"apiVersion": api_version, "kind": kind})


def test_fields_that_are_not_known_are_not_written() -> None:
    whole: dict[str, Any] = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "x": 1},
        "y": {"z": []},
        "data": None,
    }
    assert protobuf.decode(protobuf.encode(whole), NONE) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }


def test_a_rejection_has_the_bytes_that_go_writes() -> None:
    """Captured from a kube-apiserver v1.37.1."""
    rejection = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "m",
        "reason": "NotFound",
    }
    assert protobuf.encode(rejection | {"details": {}, "code": 404}) == (
        b'k8s\0\n\x0c\n\x02v1\x12\x06Status\x12-\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a\x01m"\x08NotFound'
        b'*\n\n\0\x12\0\x1a\0(\x002\x000\x94\x03\x1a\0"\0'
    )


def test_a_document_has_the_bytes_that_go_writes() -> None:
    """Captured from a kube-apiserver v1.37.1."""
    status = {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": "e", "creationTimestamp": None}}
    condition = {"type": "Healthy", "status": "True", "message": "ok"}
    assert protobuf.encode(status | {"conditions": [condition]}) == (
        b'k8s\0\n\x15\n\x02v1\x12\x0fComponentStatus\x12*\n\x11\n\x01e\x12\0\x1a\0"\0*\x002\x008\0B\0'
        b'\x12\x15\n\x07Healthy\x12\x04True\x1a\x02ok"\0\x1a\0"\0'
    )
