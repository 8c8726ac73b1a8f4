"""Requests in CBOR have the same answers from Tetrapod and from a kube-apiserver with the feature gate."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from support import kube_apiserver, stock
from support.definitions import definition
from support.etcd import running_etcd
from support.server import running
from support.waiting import until
from tetrapod.machinery import cbor

GATE: Final = "--feature-gates=CBORServingAndStorage=true"
CBOR: Final = "application/cbor"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
APPLY: Final = "application/apply-patch+cbor"
VARYING: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "time", "serverAddress"})


def widget(name: bytes, value: bytes) -> bytes:
    """Return a widget in CBOR with an encoded value in its spec."""
    head = b"\xa4\x44kind\x46Widget\x4aapiVersion\x4eexample.com/v1\x48metadata\xa1\x44name"
    return head + bytes((0x40 + len(name),)) + name + b"\x44spec\xa1\x41v" + value


def config_map(name: str, **members: Any) -> bytes:
    return cbor.encode({"kind": "ConfigMap", "metadata": {"name": name}, **members})


VALUES: Final = [
    "c11a65000000", "c120", "c04178", "c16173", "d54568656c6c6f", "d64568656c6c6f",
    "d6824568656c6c6fd74161", "d6a1416b4176", "41ff", "61ff", "f7", "f8ff",
    "f818", "1bffffffffffffffff", "3bffffffffffffffff", "f93e00", "fb4008cccccccccccd", "a10102",
    "a2416101616102", "a1d820416101", "a18002", "c24101", "5f41614162ff", "5f6161ff",
    "d65f41614162ff", "d9d9f701", "5bffffffffffffffff", "9bffffffffffffffff", "ba00300000", "f97e00",
    "1c", "ff",
]  # fmt: skip
BODIES: Final = (
    "", "a141", "a000", "ff", "80", "05", "6568656c6c6f", "f6", "a0", "a1446b696e6405",
)  # fmt: skip
TWICE: Final = [
    b"\xa4\x44kind\x49ConfigMap\x4aapiVersion" + version + b"\x41a\x01\x41a\x02"
    for version in (b"\x42v1", b"\x45a/b/c", b"\x40", b"\x05")
]
"""Objects with a duplicate member and different apiVersions, of which the last two are empty and not a string."""
Call = tuple[str, str, bytes, str, str]
CALLS: Final[list[Call]] = [
    *(("POST", WIDGETS, widget(b"v%d" % i, bytes.fromhex(value)), CBOR, CBOR) for i, value in enumerate(VALUES)),
    *(("POST", path, bytes.fromhex(body), CBOR, CBOR) for body in BODIES for path in (CONFIG_MAPS, WIDGETS)),
    *(("POST", path, body, CBOR, CBOR) for body in TWICE for path in (CONFIG_MAPS, WIDGETS)),
    ("POST", CONFIG_MAPS, config_map("a", data={"a": "b"}), CBOR, CBOR),
    ("POST", CONFIG_MAPS, config_map("wrong", data=5), CBOR, CBOR),
    ("POST", CONFIG_MAPS, config_map("wrong", data={"a": 5}), CBOR, CBOR),
    ("POST", CONFIG_MAPS, config_map("wrong", data=[1]), CBOR, CBOR),
    ("POST", CONFIG_MAPS, config_map("wrong", immutable="x"), CBOR, CBOR),
    ("POST", CONFIG_MAPS, config_map("unknown", nope=1, zap=2), CBOR, CBOR),
    ("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", config_map("strict", nope=1), CBOR, CBOR),
    ("GET", f"{CONFIG_MAPS}/a", b"", "", CBOR),
    ("GET", f"{CONFIG_MAPS}/a", b"", "", f"{CBOR};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Da", b"", "", CBOR),
    ("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da", b"", "", CBOR),
    ("GET", CONFIG_MAPS, b"", "", f"{CBOR};as=Table;v=v1;g=meta.k8s.io"),
    ("GET", CONFIG_MAPS, b"", "", "application/cbor-seq"),
    ("GET", CONFIG_MAPS, b"", "", "application/zz"),
    ("GET", WIDGETS, b"", "", "application/zz"),
    ("GET", f"{CONFIG_MAPS}/missing", b"", "", CBOR),
    ("GET", "/api/v1/missing", b"", "", CBOR),
    ("GET", "/api/v1/namespaces?timeout=invalid", b"", "", CBOR),
    ("GET", "/api", b"", "", CBOR),
    ("GET", "/apis/apps", b"", "", CBOR),
    ("GET", "/apis/example.com", b"", "", CBOR),
    ("GET", "/apis/example.com/v1", b"", "", CBOR),
    ("GET", "/version", b"", "", CBOR),
    ("PATCH", f"{CONFIG_MAPS}/b?fieldManager=m", config_map("b", apiVersion="v1", data={"a": "b"}), APPLY, CBOR),
    ("PATCH", f"{CONFIG_MAPS}/b?fieldManager=m", b"", APPLY, CBOR),
    ("PATCH", f"{CONFIG_MAPS}/b?fieldManager=m", b"\x80", APPLY, CBOR),
    ("PATCH", f"{CONFIG_MAPS}/b?fieldManager=m", b"\xf6", APPLY, CBOR),
    ("PATCH", f"{CONFIG_MAPS}/b", config_map("b", apiVersion="v1"), APPLY, CBOR),
    ("PATCH", f"{WIDGETS}/b", b"{}", "application/zz", CBOR),
    ("POST", CONFIG_MAPS, b"{}", "application/zz", CBOR),
    ("DELETE", f"{CONFIG_MAPS}/a", b"\xa1", CBOR, CBOR),
    ("DELETE", f"{CONFIG_MAPS}/a", cbor.encode({"kind": "DeleteOptions", "apiVersion": "v1"}), CBOR, CBOR),
]


class Client:
    """A client that authenticates with a bearer token."""

    def __init__(self, url: str, ca: Path) -> None:
        self._url = urlsplit(url)
        self._context = ssl.create_default_context(cafile=str(ca))

    def call(self, method: str, path: str, body: bytes, content_type: str, accept: str) -> tuple[int, str, Any, Any]:
        assert self._url.hostname is not None
        connection = http.client.HTTPSConnection(self._url.hostname, self._url.port, context=self._context, timeout=60)
        headers = {"Authorization": f"Bearer {kube_apiserver.TOKEN}", "Accept": accept, "User-Agent": "test"}
        if content_type:
            headers["Content-Type"] = content_type
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            warnings = response.headers.get_all("warning")
            raw = response.read()
            return response.status, response.headers.get("content-type", ""), comparable(decoded(raw)), warnings


def decoded(raw: bytes) -> Any:
    if raw.startswith(cbor.MAGIC):
        return cbor.decode(raw)
    return json.loads(raw) if raw.startswith(b"{") else raw.decode()


def comparable(value: Any) -> Any:
    """Return a value with `*` in place of those that differ from server to server."""
    if isinstance(value, dict):
        return {name: "*" if name in VARYING else comparable(member) for name, member in value.items()}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def answers(url: str, ca: Path) -> list[tuple[int, str, Any, Any]]:
    client, json_type = Client(url, ca), "application/json"
    body = json.dumps(definition("example.com", "Widget")).encode()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert client.call("POST", path, body, json_type, json_type)[0] == 201
    until(lambda: client.call("GET", WIDGETS, b"", "", json_type)[0] == 200)
    until(lambda: client.call("GET", "/apis/example.com", b"", "", json_type)[0] == 200)
    return [client.call(*call) for call in CALLS]


@pytest.mark.long
def test_answers_in_cbor_equal_those_of_a_kube_apiserver(tmp_path: Path) -> None:
    binary = stock.binaries()["kube-apiserver"]
    with (
        running_etcd(tmp_path / "etcd") as etcd,
        kube_apiserver.running_over(etcd.url, binary, tmp_path / "stock", GATE) as original,
    ):
        expected = answers(original.url, original.ca)
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(kube_apiserver.TOKENS)
    with running(tmp_path / "own", GATE, f"--token-auth-file={tokens}") as server:
        received = answers(server.url, server.ca)
    differing = [
        (call[:3], theirs, ours) for call, theirs, ours in zip(CALLS, expected, received, strict=True) if theirs != ours
    ]
    assert differing == []
