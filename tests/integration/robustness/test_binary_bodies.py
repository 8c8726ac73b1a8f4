"""Hostile bodies of CBOR and protobuf to each service: a bad request with a Status, and memory stays bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.attacked import Attacked
from support.wire import Client

pytestmark = pytest.mark.long

PATHS: Final = {
    "core": "/api/v1/namespaces/default/configmaps",
    "extensions": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "auth": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "aggregator": "/apis/apiregistration.k8s.io/v1/apiservices",
}
MOST: Final = 3 << 20  # the largest body
GROWTH: Final = 150 << 20
"""The most memory that the bodies may leave behind in a process, with the pools of malloc and caches."""

CBOR: Final = {
    "nothing": b"",
    "no object": b"\xd9\xd9\xf7\x80",
    "deep arrays": b"\x81" * 100_000,
    "deep maps": b"\xa1\x41a" * 100_000,
    "deep tags": b"\xd9\xd9\xf7" * 100_000,
    "arrays of indefinite length": b"\x9f" * 100_000,
    "an array of 2^64 items": b"\xa1\x41a\x9b" + b"\xff" * 8,
    "a string of 2^63 bytes": b"\xa1\x41a\x5b\x7f" + b"\xff" * 7,
    "a string in endless chunks": b"\xa1\x41a\x5f" + b"\x41b" * 500_000,
    "a map without end": b"\xbf" + b"\x41a\x01" * 500_000,
    "duplicate names": b"\xa3\x48metadata\xa1\x44name\x41a\x44data\xa0\x44data\xa0",
    "many empty arrays": b"\xa1\x44data\x9a\x00\x2f\xff\x00" + b"\x80" * (MOST - 1000),
    "a large number": b"\xa1\x41a\xc2\x5a\x00\x20\x00\x00" + b"\xff" * (2 << 20),
    "a reserved item": b"\xa1\x41a\xfc",
}


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


def _message(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _nested(levels: int) -> bytes:
    message = b""
    for _ in range(levels):
        if len(message) > MOST - 2000:
            break
        message = _message(1, message)
    return message


PROTOBUF: Final = {
    "nothing": b"",
    "no envelope": b"k8s\0",
    "no message": b"k8s\0" + b"\xff" * 1000,
    "a length of 2^63": b"k8s\0" + _varint(2 << 3 | 2) + _varint(1 << 63),
    "a length beyond the body": b"k8s\0" + _varint(2 << 3 | 2) + _varint(1 << 31) + b"x",
    "deep messages": b"k8s\0" + _message(2, _nested(100_000)),
    "groups": b"k8s\0" + _message(2, b"\x0b" * 500_000),
    "an object without end": b"k8s\0" + _message(2, b"\x0a\xff\xff\xff\x7f" * 1000),
    "many empty messages": b"k8s\0" + _message(2, b"\x0a\x00" * ((MOST - 1000) // 2) + b"\x0a\x05"),
}


@pytest.fixture(scope="module", autouse=True)
def memory_is_bounded(server: Attacked) -> Iterator[None]:
    before = [_memory(process.pid) for process, _ in server.processes]
    yield
    after = [_memory(process.pid) for process, _ in server.processes]
    assert all(now - then < GROWTH for then, now in zip(before, after, strict=True)), (before, after)


def _memory(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


@pytest.fixture(scope="module")
def sender(server: Attacked) -> Iterator[Client]:
    with Client(server, timeout=60) as client:
        yield client


@pytest.mark.parametrize("name", CBOR)
def test_hostile_cbor_is_a_bad_request(sender: Client, name: str) -> None:
    _rejected(sender, CBOR[name], "application/cbor")


@pytest.mark.parametrize("name", PROTOBUF)
def test_hostile_protobuf_is_a_bad_request(sender: Client, name: str) -> None:
    _rejected(sender, PROTOBUF[name], "application/vnd.kubernetes.protobuf")


def _rejected(client: Client, body: bytes, media_type: str) -> None:
    for service, path in PATHS.items():
        answer = client("POST", path, body, {"Content-Type": media_type, "Accept": "application/json"})
        assert answer.status in (400, 422), (service, answer.body[:500])
        assert answer.json["kind"] == "Status"
        assert answer.json["reason"] in ("BadRequest", "Invalid")
        assert answer.json["message"]
