"""Events and attributes of exported spans are upstream's: of the verbs, of the watch cache, of etcd and of encoding."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

import pytest

from integration.tracing.conftest import TOKENS, TRACEPARENT, ask, tracing_file
from integration.tracing.test_one_process import exported
from support.etcd import running_etcd
from support.kms import KmsPlugin
from support.otlp import Collector, ReceivedSpan
from support.server import Server, running

NODES: Final = "/api/v1/nodes"
NODE: Final = f"{NODES}/fake"
STORED: Final = "/minions/fake"
BODY: Final = ["limitedReadBody succeeded", "About to convert to expected version", "Conversion done"]
STORING: Final = ["About to store object in database", "Write to database call succeeded"]
RESPONDING: Final = ["About to write a response", "Writing http response done"]
WRITING: Final = ["About to start writing response", "Write call succeeded"]
CACHED: Final = ["watchCache locked acquired", "watchCache fresh enough"]
ENCRYPTION: Final = """
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{{kms: {{apiVersion: v2, name: vault, endpoint: "{endpoint}"}}}}]
"""
UPDATED: Final = [
    "initial value restored",
    "About to Encode",
    "Encode succeeded",
    "Transaction prepared",
    "TransformToStorage succeeded",
    "Txn call completed",
    "Transaction committed",
    "Decode succeeded",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("span-events")
    plugin, encryption = KmsPlugin(directory), directory / "encryption.yaml"
    plugin.start()
    encryption.write_text(ENCRYPTION.format(endpoint=plugin.endpoint))
    flags = {
        "token-auth-file": str(TOKENS),
        "tracing-config-file": tracing_file(directory, collector),
        "encryption-provider-config": str(encryption),
        "controllers": "-*",
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    try:
        with (
            running_etcd(directory / "etcd") as etcd,
            running(directory / "data", f"--etcd-servers={etcd.url}", *given) as found,
        ):
            yield found
    finally:
        plugin.stop()


class Traced:
    """Sends requests that are traced, and returns their spans by name."""

    def __init__(self, server: Server, collector: Collector) -> None:
        self._url, self._collector = server.url, collector

    def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", expected: int = 200
    ) -> dict[str, ReceivedSpan]:
        headers = {"content_type": content_type} if body is not None else {}
        status, answered, answer = ask(self._url, path, body, method=method, traceparent=TRACEPARENT, **headers)
        assert status == expected, answer
        spans = exported(self._collector, answered["audit-id"])
        repeated = {"audit-id": answered["audit-id"]}
        for name in (
            "Create",
            "Get",
            "List",
            "SerializeObject",
            "Create etcd3",
            "GuaranteedUpdate etcd3",
            "cacher.Get",
        ):
            assert name not in spans or spans[name].attributes.items() >= repeated.items(), name
        return spans


@pytest.fixture
def send(server: Server, collector: Collector) -> Traced:
    return Traced(server, collector)


def events(span: ReceivedSpan) -> list[str]:
    return [name for name, _ in span.events]


def check_encoding(span: ReceivedSpan, method: str, path: str) -> None:
    assert events(span) == WRITING
    shown = {name: value for name, value in span.attributes.items() if name != "audit-id"}
    assert shown == {
        "method": method,
        "url": path,
        "protocol": "HTTP/1.1",
        "mediaType": "application/json",
        "encoder": (
            '{"encodeGV":"v1","encoder":"{\\"name\\":\\"json\\",\\"pretty\\":\\"false\\",\\"strict\\":\\"false\\",'
            '\\"yaml\\":\\"false\\"}","name":"versioning"}'
        ),
    }


def test_spans_of_writes_and_deletions_have_upstreams_events(send: Traced) -> None:
    created = send("POST", NODES, {"metadata": {"name": "fake"}}, expected=201)
    assert events(created["Create"]) == [*BODY, *STORING, *RESPONDING]
    stored = created["Create etcd3"]
    assert (stored.attributes["key"], stored.attributes["type"], stored.attributes["resource"]) == (
        STORED,
        "*core.Node",
        "nodes",
    )
    assert events(stored) == [
        "About to Encode",
        "Encode succeeded",
        "TransformToStorage succeeded",
        "Txn call succeeded",
        "Decode succeeded",
    ]
    check_encoding(created["SerializeObject"], "POST", NODES)

    node = {"metadata": {"name": "fake", "annotations": {"foo": "bar"}}}
    updated = send("PUT", NODE, node)
    assert events(updated["Update"]) == [*BODY, *STORING, *RESPONDING]
    assert events(updated["GuaranteedUpdate etcd3"]) == UPDATED
    check_encoding(updated["SerializeObject"], "PUT", NODE)

    patched = send("PATCH", NODE, {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
    assert events(patched["Patch"]) == [
        "limitedReadBody succeeded",
        "Recorded the audit event",
        "About to apply patch",
        "About to check admission control",
        "Object stored in database",
        *RESPONDING,
    ]
    assert events(patched["GuaranteedUpdate etcd3"]) == UPDATED

    deleted = send("DELETE", NODE, {"kind": "DeleteOptions", "apiVersion": "v1"})
    assert events(deleted["Delete"]) == [
        "limitedReadBody succeeded",
        "Decoded delete options",
        "Recorded the audit event",
        "About to delete object from database",
        "Object deleted from database",
        *RESPONDING,
    ]
    check_encoding(deleted["SerializeObject"], "DELETE", NODE)


def test_spans_of_reads_have_upstreams_events(send: Traced) -> None:
    send("POST", NODES, {"metadata": {"name": "read"}}, expected=201)
    got = send("GET", f"{NODES}/read?resourceVersion=0")
    assert events(got["Get"]) == ["About to Get from storage", *RESPONDING]
    cached = got["cacher.Get"]
    assert (cached.attributes["key"], cached.attributes["resource-version"]) == ("/minions/read", "0")
    assert events(cached) == [*CACHED, "GetByKey success"]
    check_encoding(got["SerializeObject"], "GET", f"{NODES}/read")

    listed = send("GET", NODES)
    assert listed["cacher.GetList"].attributes["type"] == "nodes"
    assert events(listed["cacher.GetList"]) == [
        "Ready",
        "getCurrentRV success",
        *CACHED,
        "GetLatestSnapshotOrBuildLocked success",
        "Listed items from cache",
        "Filtered items",
    ]
    check_encoding(listed["SerializeObject"], "GET", NODES)
    assert "etcdserverpb.KV/Range" in listed

    query = "watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    watched = send("GET", f"{NODES}?{query}&allowWatchBookmarks=true")
    assert watched["cacher.Watch"].attributes["type"] == "nodes"
    assert events(watched["cacher.Watch"]) == CACHED
    streamed = watched["WatchServer.HandleHTTP"]
    assert streamed.attributes["mediaType"] == "application/json;stream=watch"
    assert events(streamed) == ["About to start writing response"]


def test_encryption_by_a_plugin(send: Traced) -> None:
    secret = {"metadata": {"name": "s"}, "data": {"foo": b64encode(b"bar").decode()}}
    created = send("POST", "/api/v1/namespaces/default/secrets", secret, expected=201)
    sealed = created["TransformToStorage with envelopeTransformer"]
    assert sealed.attributes["transformer.provider.name"] == "vault"
    assert events(sealed) == [
        "About to encrypt data using DEK",
        "Data encryption succeeded",
        "About to encode encrypted object",
        "Encoded encrypted object",
    ]
