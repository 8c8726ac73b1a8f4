"""Values that a stock kube-apiserver stored as protobuf are read, and those that cannot be decoded are reported."""

from __future__ import annotations

import orjson
import pytest

from tetrapod.generic.storage.encoding import CorruptObject, splice
from tetrapod.machinery.protobuf.envelope import encode, envelope

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "namespace": "default", "creationTimestamp": "2026-11-23T18:00:00Z"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
    "status": {},
}


def test_a_value_becomes_json_with_its_resource_version() -> None:
    served = splice(encode(POD), 7)
    assert served.startswith(b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7",')
    assert orjson.loads(served) == {**POD, "metadata": {"resourceVersion": "7", **POD["metadata"]}}  # type: ignore[dict-item]


def test_the_list_of_node_ports_is_read_although_it_is_not_served() -> None:
    value = bytes.fromhex(  # a message as kube-apiserver writes it, with a short bitmap
        "6b3873000a150a027631120f52616e6765416c6c6f636174696f6e12190a060a0012001a00120b33303030302d33323736371a020180"
        "1a002200"
    )
    assert orjson.loads(splice(value, 3)) | {"metadata": None} == {
        "kind": "RangeAllocation",
        "apiVersion": "v1",
        "metadata": None,
        "range": "30000-32767",
        "data": "AYA=",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (envelope("example.com/v1", "Thing", b""), "no kind Thing in example.com/v1 is known"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\xff", "unexpected EOF"),
        (encode(POD)[:-20], "unexpected EOF"),
    ],
)
def test_a_value_that_cannot_be_decoded_is_corrupt(value: bytes, text: str) -> None:
    with pytest.raises(CorruptObject, match=text):
        splice(value, 7)
