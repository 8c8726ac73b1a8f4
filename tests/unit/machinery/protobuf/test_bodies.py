"""Checks that protobuf bodies are decoded into the same objects as the equivalent JSON bodies."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.serializer.errors import DecodeError

POD = GroupVersionKind("", "v1", "Pod")


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, message) + field(3, "") + field(4, "")


def test_the_body_of_kubectl_create_configmap_is_decoded() -> None:
    data = bytes.fromhex(
        "6b3873000a0f0a0276311209436f6e6669674d6170"  # the envelope: v1 ConfigMap
        "121b0a110a017812001a0022002a003200380042001206 0a0161120162 1a002200"
    )
    found = protobuf.decode(data, GroupVersionKind("", "v1", "ConfigMap"))
    assert found["kind"], found["apiVersion"] == ("ConfigMap", "v1")
    assert found["metadata"]["name"] == "x"
    assert found["metadata"]["creationTimestamp"] is None
    assert found["data"] == {"a": "b"}


def test_embedded_structs_are_fields_of_their_owner() -> None:
    volume = field(1, "v") + field(2, field(2, field(1, "Memory")))
    probe = field(1, field(2, field(1, "/healthz") + field(2, field(1, 1) + field(3, "http")))) + field(2, 5)
    container = field(1, "c") + field(10, probe)
    found = protobuf.decode(body("v1", "Pod", field(2, field(1, volume) + field(2, container))), POD)
    assert found["spec"]["volumes"] == [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    assert found["spec"]["containers"][0]["livenessProbe"] == {
        "httpGet": {"path": "/healthz", "port": "http"},
        "initialDelaySeconds": 5,
    }


def test_special_types_are_written_as_json_writes_them() -> None:
    limits = field(1, field(1, "cpu") + field(2, field(1, "500m")))
    container = field(1, "c") + field(8, limits)
    meta = field(8, field(1, 1_700_000_000)) + field(10, -1)
    found = protobuf.decode(body("v1", "Pod", field(1, meta) + field(2, field(2, container) + field(5, -7))), POD)
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m"}
    assert found["spec"]["activeDeadlineSeconds"] == -7
    assert found["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert found["metadata"]["deletionGracePeriodSeconds"] == -1


def test_bytes_maps_and_lists() -> None:
    secret = protobuf.decode(
        body("v1", "Secret", field(2, field(1, "k") + field(2, b"\xff\0")) + field(2, field(1, "empty"))),
        GroupVersionKind("", "v1", "Secret"),
    )
    assert secret["data"] == {"k": base64.b64encode(b"\xff\0").decode(), "empty": ""}
    extra = field(5, field(1, "scopes") + field(2, field(1, "a") + field(1, "b")))
    kind = GroupVersionKind("authorization.k8s.io", "v1", "SubjectAccessReview")
    review = protobuf.decode(body("authorization.k8s.io/v1", "SubjectAccessReview", field(2, extra)), kind)
    assert review["spec"]["extra"] == {"scopes": ["a", "b"]}


def test_schemas_of_custom_resources() -> None:
    inner = field(5, "object") + field(38, 1) + field(8, field(1, b'{"a":1}')) + field(30, field(1, 1))
    kind = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    version = field(1, "v1") + field(4, field(1, inner))
    found = protobuf.decode(body("apiextensions.k8s.io/v1", kind.kind, field(2, field(7, version))), kind)
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["x-kubernetes-preserve-unknown-fields"] is True
    assert schema["default"] == {"a": 1}


def test_an_envelope_without_a_kind_is_the_expected_kind() -> None:
    found = protobuf.decode(b"k8s\0" + field(2, field(1, field(1, "p"))), POD)
    assert found == {"metadata": {"name": "p"}}


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"k8s\0\x0a\x7f", body("v1", "Pod", b"\x0a\x05x"), body("v1", "Pod", field(1, 5))],
)
def test_invalid_messages_are_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError):
        protobuf.decode(data, POD)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_decoded_or_rejected(data: bytes) -> None:
    for given_body in (b"k8s\0" + data, body("v1", "Pod", data), body("apps/v1", "Deployment", data)):
        try:
            protobuf.decode(given_body, POD)
        except DecodeError:
            continue


def test_doubles_are_decoded() -> None:
    assert struct.unpack("<d", struct.pack("<d", 1.5))[0] == 1.5
    schema = varint(9 << 3 | 1) + struct.pack("<d", 1.5)
    kind = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    message = field(2, field(7, field(4, field(1, schema))))
    found = protobuf.decode(body("apiextensions.k8s.io/v1", kind.kind, message), kind)
    assert found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {"maximum": 1.5}
