"""CBOR behind the feature gate CBORServingAndStorage. The expected texts are those of a kube-apiserver v1.37.1."""

from __future__ import annotations

import contextlib
import http.client
import json
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.definitions import definition
from support.server import Server, running
from support.service_accounts import wait_for_service_account
from support.waiting import until
from tetrapod.machinery import cbor

GATE = "--feature-gates=CBORServingAndStorage=true,ClientsAllowCBOR=true,ClientsPreferCBOR=true"
CBOR = "application/cbor"
JSON = "application/json"
APPLY = "application/apply-patch+cbor"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
PARTIAL = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
BUILTIN_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
UNDETERMINED = "unable to determine group/version/kind: "


class Answer(NamedTuple):
    status: int
    content_type: str
    raw: bytes
    warnings: list[str]

    @property
    def body(self) -> Any:
        return cbor.decode(self.raw) if self.raw.startswith(cbor.MAGIC) else json.loads(self.raw)

    @property
    def message(self) -> str:
        return str(self.body["message"])


def call(
    server: Server, method: str, path: str, body: Any = None, *, content_type: str = CBOR, accept: str = CBOR
) -> Answer:
    """Return the answer to a request. A body that is not bytes is encoded as CBOR."""
    data = body if isinstance(body, bytes | None) else cbor.encode(body)
    with contextlib.closing(server.connect()) as connection:
        headers = {"Accept": accept} | ({"Content-Type": content_type} if data is not None else {})
        connection.request(method, path, data, headers)
        response: http.client.HTTPResponse = connection.getresponse()
        warnings = response.headers.get_all("warning") or []
        return Answer(response.status, response.headers.get("content-type", ""), response.read(), warnings)


def config_map(name: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}, **members}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def serve_widgets(server: Server) -> None:
    body = json.dumps(definition("example.com", "Widget")).encode()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert call(server, "POST", path, body, content_type=JSON, accept=JSON).status == 201
    until(lambda: call(server, "GET", WIDGETS, accept=JSON).status == 200)
    wait_for_service_account(partial(call, server, accept=JSON))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("cbor"), f"{GATE},ComponentStatusz=true,ComponentFlagz=true") as server:
        serve_widgets(server)
        yield server


def test_objects_are_created_read_and_applied_as_cbor(server: Server) -> None:
    created = call(server, "POST", CONFIG_MAPS, config_map("a", binaryData={"x": "aGVsbG8="}))
    assert (created.status, created.content_type) == (201, CBOR)
    assert created.raw.startswith(cbor.MAGIC)
    read = call(server, "GET", f"{CONFIG_MAPS}/a").body
    assert read == call(server, "GET", f"{CONFIG_MAPS}/a", accept=JSON).body
    assert read["binaryData"] == {"x": "aGVsbG8="}
    applied = call(server, "PATCH", f"{CONFIG_MAPS}/b?fieldManager=m", config_map("b"), content_type=APPLY)
    assert (applied.status, applied.body["data"]) == (201, {"a": "b"})
    assert applied.body["metadata"]["managedFields"][0]["operation"] == "Apply"
    created = call(server, "POST", WIDGETS, widget("w", size=3, free={"list": [1, None, True, -7, 3.5]}))
    assert (created.status, created.body["spec"]["free"]) == (201, {"list": [1, None, True, -7, 3.5]})
    scaled = call(server, "DELETE", f"{CONFIG_MAPS}/b", {"apiVersion": "v1", "kind": "DeleteOptions"})
    assert (scaled.status, scaled.body["status"]) == (200, "Success")


def test_byte_strings_of_tag_22_are_binary_data(server: Server) -> None:
    body = cbor.encode(config_map("tagged")).replace(b"\x44data\xa1\x41a\x41b", b"\x4abinaryData\xa1\x41x\xd6\x45hello")
    assert call(server, "POST", CONFIG_MAPS, body).body["binaryData"] == {"x": "aGVsbG8="}


def test_lists_and_partial_objects_come_as_cbor_but_tables_do_not(server: Server) -> None:
    call(server, "POST", CONFIG_MAPS, config_map("listed"))
    listed = call(server, "GET", CONFIG_MAPS).body
    assert listed == call(server, "GET", CONFIG_MAPS, accept=JSON).body
    partial = call(server, "GET", f"{CONFIG_MAPS}/listed", accept=CBOR + PARTIAL)
    assert (partial.content_type, partial.body["kind"]) == (CBOR, "PartialObjectMetadata")
    table = call(server, "GET", CONFIG_MAPS, accept=f"{CBOR};as=Table;v=v1;g=meta.k8s.io")
    assert (table.status, table.content_type) == (406, JSON)
    assert table.message == f"only the following media types are accepted: {BUILTIN_TYPES}, {CBOR}"
    fallback = call(server, "GET", CONFIG_MAPS, accept=f"{CBOR};as=Table;v=v1;g=meta.k8s.io,{CBOR}")
    assert (fallback.status, fallback.body["kind"]) == (200, "ConfigMapList")


def test_watches_are_cbor_sequences(server: Server) -> None:
    call(server, "POST", CONFIG_MAPS, config_map("watched"))
    one = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dwatched"
    for accept, kind in ((CBOR, "ConfigMap"), (f"{CBOR};stream=watch", "ConfigMap"), (CBOR + PARTIAL, "PartialObject")):
        watched = call(server, "GET", one, accept=accept)
        assert (watched.status, watched.content_type) == (200, "application/cbor-seq")
        assert watched.body["type"] == "ADDED"
        assert watched.body["object"]["kind"].startswith(kind)
    events = {call(server, "GET", one).raw for _ in range(8)}
    assert len(events) > 1  # so that no client depends on an order
    accepted = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq"
    rejected = call(server, "GET", one, accept="application/yaml,text/html")
    assert rejected.status == 406
    assert accepted in rejected.raw.decode().replace("\n  ", " ")


def test_encodings_of_responses_differ(server: Server) -> None:
    assert len({call(server, "GET", "/api/v1/namespaces/default").raw for _ in range(12)}) > 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", f"the object provided is unrecognized (must be of type ConfigMap): {UNDETERMINED}EOF (<empty>)"),
        (
            b"\xa1\x41",
            f"the object provided is unrecognized (must be of type ConfigMap): {UNDETERMINED}unexpected EOF (a141)",
        ),
        (
            b"\x80",
            f"the object provided is unrecognized (must be of type ConfigMap): {UNDETERMINED}cbor: cannot unmarshal "
            "array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option) (80)",
        ),
        (
            b"\xa1\x44kind\x05",
            f"the object provided is unrecognized (must be of type ConfigMap): {UNDETERMINED}cbor: cannot unmarshal "
            "positive integer into Go struct field v1.TypeMeta.kind of type string (a1446b696e6405)",
        ),
        (
            b"\xa2\x44kind\x49ConfigMap\x44data\xa1\x41a\x61\xff",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: cbor: invalid UTF-8 string',
        ),
        (
            config_map("w", data=5),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: cbor: cannot unmarshal positive integer into '
            "Go struct field v1.ConfigMap.data of type map[string]string",
        ),
        (
            b"\xa2\x44kind\x49ConfigMap\x49immutable\x61x",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: cbor: cannot unmarshal UTF-8 text string into '
            "Go struct field v1.ConfigMap.immutable of type bool",
        ),
    ],
)
def test_bodies_that_are_not_the_object_are_rejected(server: Server, body: Any, message: str) -> None:
    rejected = call(server, "POST", CONFIG_MAPS, body)
    assert (rejected.status, rejected.content_type, rejected.message) == (400, CBOR, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"\xa0",
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' (a0)",
        ),
        (
            b"\xa1\x44kind\x46Widget",
            "Widget in version \"\" cannot be handled as a Widget: Object 'apiVersion' is missing in "
            "'{'kind': 'Widget'}'",
        ),
        (
            b"\xa2\x44kind\x46Widget\x44spec\xa2\x41a\x41b\x61a\x41c",
            'Widget in version "v1" cannot be handled as a Widget: cbor: found duplicate map key "a" at map element '
            "index 1",
        ),
    ],
)
def test_bodies_that_are_not_the_custom_object_are_rejected(server: Server, body: bytes, message: str) -> None:
    rejected = call(server, "POST", WIDGETS, body)
    assert (rejected.status, rejected.message) == (400, message)


def test_delete_options_that_are_not_acceptable_are_rejected(server: Server) -> None:
    assert call(server, "POST", CONFIG_MAPS, config_map("kept")).status == 201
    for body in (b"\xa1\x46dryRun\xf7", b"\xa1\x41\x61", b"\x80" * 2000):
        answer = call(server, "DELETE", f"{CONFIG_MAPS}/kept", body)
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert call(server, "GET", f"{CONFIG_MAPS}/kept").status == 200


def test_apply_configurations_that_cannot_be_decoded_are_rejected(server: Server) -> None:
    for body, text in (
        (b"", "EOF"),
        (b"\xa1\x41", "unexpected EOF"),
        (b"\x80", "cbor: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b"\xa2\x41a\x01\x61a\x02", 'cbor: found duplicate map key "a" at map element index 1'),
    ):
        rejected = call(server, "PATCH", f"{CONFIG_MAPS}/x?fieldManager=m", body, content_type=APPLY)
        assert (rejected.status, rejected.message) == (400, f"error decoding patch: {text}")
    missing = call(server, "PATCH", f"{CONFIG_MAPS}/x", config_map("x"), content_type=APPLY)
    assert (missing.status, missing.body["reason"]) == (422, "Invalid")


def test_unknown_fields_are_reported_by_their_place(server: Server) -> None:
    obj = {"kind": "ConfigMap", "metadata": {"name": "unknown", "bad": 1}, "alsobad": 2}
    warned = call(server, "POST", CONFIG_MAPS, obj)
    # The members of an encoded object are sorted by the length of their names.
    assert (warned.status, warned.warnings) == (201, ['299 - "cbor: found unknown field at map element index 1"'])
    strict = call(server, "POST", f"{CONFIG_MAPS}?fieldValidation=Strict", obj)
    assert strict.message.endswith("strict decoding error: cbor: found unknown field at map element index 1")
    assert not call(server, "POST", WIDGETS, {**widget("unknown"), "bad": 1}).warnings


def test_media_types_that_are_not_supported_are_rejected(server: Server) -> None:
    body = call(server, "POST", CONFIG_MAPS, b"{}", content_type="application/cbor-seq")
    assert (body.status, body.message.rpartition(": ")[2]) == (415, f"{BUILTIN_TYPES}, {CBOR}")
    patch = call(server, "PATCH", f"{WIDGETS}/w", b"{}", content_type="application/zz")
    assert (patch.status, patch.message.rpartition(", ")[2]) == (415, APPLY)
    accept = call(server, "GET", CONFIG_MAPS, accept="application/zz")
    streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq"
    assert (accept.status, accept.message.rpartition(": ")[2]) == (406, f"{BUILTIN_TYPES}, {CBOR}, {streams}")


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/api", CBOR, "APIVersions"),
        ("/apis", CBOR, "APIGroupList"),
        ("/apis/apps", CBOR, "APIGroup"),
        ("/apis/apps/v1", CBOR, "APIResourceList"),
        ("/apis/example.com", CBOR, "APIGroup"),
        ("/apis", f"{CBOR};v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList", "APIGroupDiscoveryList"),
        ("/statusz", f"{CBOR};v=v1beta1;g=config.k8s.io;as=Statusz", "Statusz"),
        ("/flagz", f"{CBOR};v=v1beta1;g=config.k8s.io;as=Flagz", "Flagz"),
    ],
)
def test_paths_that_are_not_resources_are_served_as_cbor(server: Server, path: str, accept: str, kind: str) -> None:
    answer = call(server, "GET", path, accept=accept)
    assert (answer.status, answer.content_type.partition(";")[0], answer.body["kind"]) == (200, CBOR, kind)


def test_errors_of_filters_are_cbor(server: Server) -> None:
    answer = call(server, "GET", "/api/v1/namespaces?timeout=invalid")
    assert (answer.status, answer.content_type, answer.body["kind"]) == (400, CBOR, "Status")
    version = call(server, "GET", "/apis/example.com/v1")
    assert version.message == f"only the following media types are accepted: {BUILTIN_TYPES}"


def stored(data_dir: Path, name: str) -> bytes:
    """Return the latest stored value of a widget."""
    with contextlib.closing(sqlite3.connect(f"file:{next(data_dir.glob('**/*.db'))}?mode=ro", uri=True)) as database:
        query = "SELECT value FROM revisions WHERE key = ? ORDER BY revision DESC LIMIT 1"
        value: bytes = database.execute(query, (f"/registry/example.com/widgets/default/{name}",)).fetchone()[0]
        return value


def test_custom_resources_are_stored_as_cbor_while_the_gate_is_enabled(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        serve_widgets(server)
        assert call(server, "GET", WIDGETS).status == 406
        assert call(server, "POST", WIDGETS, widget("w"), accept=JSON).status == 415
        assert call(server, "PATCH", f"{CONFIG_MAPS}/x", b"\xa0", content_type=APPLY, accept=JSON).status == 415
        body = json.dumps(widget("json", size=1)).encode()
        assert call(server, "POST", WIDGETS, body, content_type=JSON, accept=JSON).status == 201
    assert stored(tmp_path, "json").startswith(b"{")
    with running(tmp_path, GATE) as server:
        large = widget("large", text="x" * 100_000)
        assert call(server, "POST", WIDGETS, large).status == 201
        assert call(server, "POST", WIDGETS, widget("cbor", size=2)).status == 201
        body = json.dumps(widget("number", ratio=1e19)).encode()
        assert call(server, "POST", WIDGETS, body, content_type=JSON, accept=JSON).status == 201
        assert call(server, "GET", f"{WIDGETS}/number").body["spec"] == {"ratio": 1e19}
        assert call(server, "DELETE", f"{WIDGETS}/number").status == 200
        names = [item["metadata"]["name"] for item in call(server, "GET", WIDGETS).body["items"]]
        assert names == ["cbor", "json", "large"]
        obj = call(server, "GET", f"{WIDGETS}/json").body
        assert call(server, "PUT", f"{WIDGETS}/json", obj).status == 200  # an update that changes nothing
        assert call(server, "GET", f"{WIDGETS}/large").body["spec"] == large["spec"]
        watched = call(server, "GET", f"{WIDGETS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Djson")
        assert watched.body["object"]["spec"] == {"size": 1}
    assert all(stored(tmp_path, name).startswith(cbor.MAGIC) for name in ("cbor", "json", "large"))
    with running(tmp_path) as server:
        for name, size in (("json", 1), ("cbor", 2)):
            assert call(server, "GET", f"{WIDGETS}/{name}", accept=JSON).body["spec"] == {"size": size}
        obj = call(server, "GET", f"{WIDGETS}/cbor", accept=JSON).body
        put = call(server, "PUT", f"{WIDGETS}/cbor", json.dumps(obj).encode(), content_type=JSON, accept=JSON)
        assert put.status == 200
    assert stored(tmp_path, "cbor").startswith(b"{")
