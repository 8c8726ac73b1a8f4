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
SECRETS: Final = "/api/v1/namespaces/default/secrets"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
REVISIONS: Final = "/apis/apps/v1/namespaces/default/controllerrevisions"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
QUOTAS: Final = "/api/v1/namespaces/default/resourcequotas"
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


def typed(kind: str, api_version: str, name: int, *members: bytes) -> bytes:
    """Return an object in CBOR with further encoded members, each a name and its value."""
    head = cbor.encode({"kind": kind, "apiVersion": api_version, "metadata": {"name": f"typed-{name}"}})
    head = head.removeprefix(cbor.MAGIC)
    return bytes((head[0] + len(members),)) + head[1:] + b"".join(members)


BINARY: Final = [
    "44 61476b3d", "42 6869", "64 61476b3d", "62 6869", "d5 42 6869", "d6 42 6869", "d7 42 6869", "d6 64 61476b3d",
    "82 1868 1869", "05", "f6", "f5", "40", "60", "5f 42 6147 42 6b3d ff", "d821 44 61476b3d", "42 61ff",
]  # fmt: skip
NUMBERS: Final = [
    "01", "20", "f93c00", "f93e00", "6131", "4131", "f5", "f6", "80", "a0", "1a80000000", "1b7fffffffffffffff",
    "1bffffffffffffffff", "3bffffffffffffffff", "c101", "c07478", "d9d9f701", "f7",
]  # fmt: skip
KEYS: Final = ["d5 44 64617461", "01", "20", "f5", "f6", "80", "a0", "62c328", "1bffffffffffffffff", "7f 62 7a7a ff"]
Call = tuple[str, str, bytes, str, str]
CALLS: Final[list[Call]] = [
    *(("POST", WIDGETS, widget(b"v%d" % i, bytes.fromhex(value)), CBOR, CBOR) for i, value in enumerate(VALUES)),
    *(("POST", path, bytes.fromhex(body), CBOR, CBOR) for body in BODIES for path in (CONFIG_MAPS, WIDGETS)),
    *(("POST", path, body, CBOR, CBOR) for body in TWICE for path in (CONFIG_MAPS, WIDGETS)),
    *(
        ("POST", SECRETS, typed("Secret", "v1", i, b"\x64data\xa1\x61k" + bytes.fromhex(value)), CBOR, CBOR)
        for i, value in enumerate(BINARY)
    ),
    *(
        ("POST", path, typed(kind, version, i, b"\x64spec\xa1" + field + bytes.fromhex(value) + end), CBOR, CBOR)
        for i, value in enumerate(NUMBERS)
        for path, kind, version, field, end in (
            (LEASES, "Lease", "coordination.k8s.io/v1", b"\x74leaseDurationSeconds", b""),
            (LEASES, "Lease", "coordination.k8s.io/v1", b"\x69renewTime", b""),
            (QUOTAS, "ResourceQuota", "v1", b"\x64hard\xa1\x64pods", b""),
            (BUDGETS, "PodDisruptionBudget", "policy/v1", b"\x6cminAvailable", b""),
        )
    ),
    *(
        ("POST", REVISIONS, typed("ControllerRevision", "apps/v1", i, b"\x64data" + bytes.fromhex(value)), CBOR, CBOR)
        for i, value in enumerate(NUMBERS)
    ),
    *(
        ("POST", CONFIG_MAPS, typed("ConfigMap", "v1", i, *members), CBOR, CBOR)
        for i, key in enumerate(KEYS)
        for members in ((bytes.fromhex(key) + b"\x01",), (b"\x64data\xa1" + bytes.fromhex(key) + b"\x61x",))
    ),
    ("POST", CONFIG_MAPS, typed("ConfigMap", "v1", 90, b"\x61z\xa2\x61a\x01\x61a\x02"), CBOR, CBOR),
    ("POST", CONFIG_MAPS, typed("ConfigMap", "v1", 91, b"\x61z\x01", b"\x61z\x02"), CBOR, CBOR),
    ("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", typed("ConfigMap", "v1", 92, b"\x61z\xf7"), CBOR, CBOR),
    ("DELETE", f"{CONFIG_MAPS}/none", cbor.encode({"preconditions": {"uid": 1}}), CBOR, CBOR),
    ("DELETE", f"{CONFIG_MAPS}/none", cbor.encode({"gracePeriodSeconds": "1"}), CBOR, CBOR),
    ("DELETE", f"{CONFIG_MAPS}/none", cbor.encode({"dryRun": "All"}), CBOR, CBOR),
    ("DELETE", f"{CONFIG_MAPS}/none", b"\xa1\x41a\xf7", CBOR, CBOR),
    ("DELETE", f"{CONFIG_MAPS}/none", b"\xa1\x46dryRun\xf7", CBOR, CBOR),
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
