"""The protobuf media type at the endpoints: when it is used, and that its content equals JSON."""

from __future__ import annotations

from typing import Any

import pytest

from integration.endpoints.serving import Api
from support.calls import Answer
from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.types import schema_for

MAPS = "/api/v1/namespaces/n/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/n/widgets"
PROTOBUF = "application/vnd.kubernetes.protobuf"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "as=Table;g=meta.k8s.io;v=v1"


def decoded(answer: Answer | bytes) -> Object:
    body = answer if isinstance(answer, bytes) else answer.body
    return protobuf.decode(body, GroupVersionKind("", "", ""))


def as_json(obj: Object, kind: str) -> Object:
    """Add the defaults that a protobuf message omits."""
    found = {**obj}
    typed.decode(schema_for(GroupVersionKind("", "v1", kind)), found)
    return found


def config_map(name: str, **data: str) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


async def fill(api: Api, *names: str, size: int = 1) -> None:
    for name in names:
        assert (await api("POST", MAPS, config_map(name, k="v" * size))).status == 201


async def test_request_and_response_bodies_are_protobuf(api: Api) -> None:
    answer = await api("POST", MAPS, protobuf.encode(config_map("a", k="ü")), content_type=PROTOBUF, accept=PROTOBUF)
    assert (answer.status, answer.headers["content-type"]) == (201, PROTOBUF)
    read = (await api("GET", f"{MAPS}/a")).json
    assert as_json(decoded(answer), "ConfigMap") == read
    assert read["data"] == {"k": "ü"}
    read["data"]["more"] = "m"
    answer = await api("PUT", f"{MAPS}/a", protobuf.encode(read), content_type=PROTOBUF, accept=f"{PROTOBUF}, */*")
    assert decoded(answer)["data"] == {"k": "ü", "more": "m"}
    patch = await api(
        "PATCH", f"{MAPS}/a", {"data": {"k": None}}, content_type="application/merge-patch+json", accept=PROTOBUF
    )
    assert decoded(patch)["data"] == {"more": "m"}


@pytest.mark.parametrize("malformed", [b'{"f:dat":{}}1', b'{"f:data":{},', b"\xff" * 13])
async def test_managed_fields_that_are_not_json_are_ignored(api: Api, malformed: bytes) -> None:
    def with_fields(obj: Object) -> bytes:
        entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        entries = [{**entry, "fieldsV1": {"f:data": {}}}]
        body = protobuf.encode({**obj, "metadata": {**obj["metadata"], "managedFields": entries}})
        assert body.count(b'{"f:data":{}}') == 1
        return body.replace(b'{"f:data":{}}', malformed)

    answer = await api("POST", MAPS, with_fields(config_map("a", k="v")), content_type=PROTOBUF)
    assert answer.status == 201, answer.json
    (entry,) = answer.json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
    changed = {**answer.json, "data": {"k": "v", "l": "w"}}
    answer = await api("PUT", f"{MAPS}/a", with_fields(changed), content_type=PROTOBUF)
    assert answer.status == 200, answer.json
    (entry,) = answer.json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}, "f:l": {}}}


async def test_the_first_accepted_media_type_is_used(api: Api) -> None:
    await fill(api, "a")
    for accept in ("*/*", f"application/json,{PROTOBUF}", f"application/yaml;q=0.1,application/json,{PROTOBUF};q=0.9"):
        assert (await api("GET", f"{MAPS}/a", accept=accept)).headers["content-type"] == "application/json"


@pytest.mark.parametrize(("count", "size"), [(0, 1), (3, 1), (250, 1000)], ids=["empty", "short", "long"])
async def test_lists_have_the_same_items_as_in_json(api: Api, count: int, size: int) -> None:
    await fill(api, *(f"m{number:03}" for number in range(count)), size=size)
    wanted = (await api("GET", MAPS)).json
    for _ in range(2):  # the second time from the cache of encoded objects
        found = decoded(await api("GET", MAPS, accept=PROTOBUF))
        assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
        assert found["metadata"] == wanted["metadata"]
        assert [item["metadata"]["name"] for item in found.get("items", [])] == [
            item["metadata"]["name"] for item in wanted["items"]
        ]


async def test_pages_have_continue_tokens(api: Api) -> None:
    await fill(api, "a", "b", "c")
    first = decoded(await api("GET", f"{MAPS}?limit=2", accept=PROTOBUF))
    assert first["metadata"]["remainingItemCount"] == 1
    rest = decoded(await api("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}", accept=PROTOBUF))
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


async def test_partial_metadata_is_encoded(api: Api) -> None:
    await fill(api, "a", "b")
    one = decoded(await api("GET", f"{MAPS}/a", accept=PARTIAL))
    assert (one["kind"], one["apiVersion"], one["metadata"]["name"]) == ("PartialObjectMetadata", "meta.k8s.io/v1", "a")
    many = decoded(await api("GET", MAPS, accept=PARTIAL_LIST))
    assert many["kind"] == "PartialObjectMetadataList"
    assert [list(item) for item in many["items"]] == [["metadata"], ["metadata"]]
    assert (await api("GET", f"{MAPS}/a", accept=PARTIAL_LIST)).status == 406
    assert (await api("GET", MAPS, accept=PARTIAL)).status == 406


async def test_tables_are_json_only(api: Api) -> None:
    await fill(api, "a")
    rejected = await api("GET", MAPS, accept=f"{PROTOBUF};{TABLE}")
    assert (rejected.status, rejected.headers["content-type"]) == (406, "application/json")
    table = await api("GET", MAPS, accept=f"{PROTOBUF};{TABLE},application/json;{TABLE}")
    assert table.json["kind"] == "Table"


async def test_errors_are_protobuf_statuses(api: Api) -> None:
    missing = await api("GET", f"{MAPS}/nope", accept=PROTOBUF)
    assert (missing.status, missing.headers["content-type"]) == (404, PROTOBUF)
    status = decoded(missing)
    assert (status["kind"], status["reason"], status["details"]["name"], status["code"]) == (
        "Status",
        "NotFound",
        "nope",
        404,
    )


async def test_a_damaged_body_differs_from_a_body_of_another_kind(api: Api) -> None:
    text = (await api("POST", MAPS, b"k8s\0zzz", content_type=PROTOBUF)).json["message"]
    assert text == "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b3873007a7a7a)"
    other = protobuf.encode({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}})
    answer = await api("POST", MAPS, other, content_type=PROTOBUF)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"].startswith('Secret in version "v1" cannot be handled as a ConfigMap')


async def test_delete_options_are_decoded(api: Api) -> None:
    await fill(api, "a")
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "another"}}
    assert (await api("DELETE", f"{MAPS}/a", protobuf.encode(options), content_type=PROTOBUF)).status == 409
    del options["preconditions"]
    gone = await api("DELETE", f"{MAPS}/a", protobuf.encode(options), content_type=PROTOBUF, accept=PROTOBUF)
    assert (gone.status, decoded(gone)["status"]) == (200, "Success")


async def test_watch_events_are_framed(api: Api) -> None:
    await fill(api, "a")
    for accept, kind in (
        (PROTOBUF, "ConfigMap"),
        (f"{PROTOBUF};stream=watch", "ConfigMap"),
        (PARTIAL, "PartialObjectMetadata"),
    ):
        answer = await api("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0", accept=accept)
        assert answer.headers["content-type"] == f"{PROTOBUF};stream=watch"
        assert [(event, obj["kind"], obj["metadata"]["name"]) for event, obj in frames(answer.body)] == [
            ("ADDED", kind, "a")
        ]


def frames(data: bytes) -> list[tuple[str, Object]]:
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        event, data = data[4 : 4 + size], data[4 + size :]
        found.append((event[2 : 2 + event[1]].decode(), decoded(event[event.index(protobuf.MAGIC) :])))
    return found


async def test_custom_resources_are_json_only_except_for_metadata(api: Api) -> None:
    widget = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert (await api("POST", WIDGETS, b"k8s\0", content_type=PROTOBUF)).status == 415
    assert (await api("POST", WIDGETS, widget)).status == 201
    assert (await api("GET", f"{WIDGETS}/w", accept=PROTOBUF)).status == 406
    assert (await api("GET", f"{WIDGETS}/w", accept=f"{PROTOBUF},application/json")).json["spec"]["size"] == 1
    one = decoded(await api("GET", f"{WIDGETS}/w", accept=f"{PARTIAL},application/json"))
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "w")
    many = decoded(await api("GET", WIDGETS, accept=PARTIAL_LIST))
    assert [item["metadata"]["name"] for item in many["items"]] == ["w"]


async def test_scale_subresources_are_encoded_in_their_group(api: Api) -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}, "replicas": 2}
    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}, "spec": spec}
    path = "/apis/apps/v1/namespaces/n/deployments"
    assert (await api("POST", path, protobuf.encode(deployment), content_type=PROTOBUF)).status == 201
    scale = decoded(await api("GET", f"{path}/d/scale", accept=PROTOBUF))
    assert (scale["apiVersion"], scale["kind"], scale["spec"]) == ("autoscaling/v1", "Scale", {"replicas": 2})
    scale["spec"]["replicas"] = 5
    answer = await api("PUT", f"{path}/d/scale", protobuf.encode(scale), content_type=PROTOBUF, accept=PROTOBUF)
    assert decoded(answer)["spec"] == {"replicas": 5}
