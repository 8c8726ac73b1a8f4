"""Tests that the OpenAPI documents of built-in types equal the real server's, apart from descriptions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from support.openapi import BufferWriter, document_of, merged
from tetrapod.generic.http.request import StreamResponse
from tetrapod.generic.openapi.custom import CustomKind, custom_parts
from tetrapod.generic.openapi.document_chunks import FormV3, JsonForm, JsonFormV3, encode_v3, join_small, join_to_chunks
from tetrapod.generic.openapi.operations import operation_id, tag
from tetrapod.generic.openapi.protobuf_v2 import ProtobufForm
from tetrapod.generic.openapi.protobuf_v3 import ProtobufFormV3
from tetrapod.generic.openapi.source import BuiltinSource, DocumentSource, JoinedSource, SinglePartSource
from tetrapod.generic.openapi.transfer import hand_over, received_parts
from tetrapod.generic.openapi.v2 import swagger
from tetrapod.machinery.gvk import GroupVersion

FACTS = Path(__file__).parents[2] / "facts/openapi"


def without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_prose(v) for k, v in value.items() if k != "description" or not isinstance(v, str)}
    return [without_prose(v) for v in value] if isinstance(value, list) else value


def digests() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((FACTS / "digests.json").read_text())
    return found


@pytest.mark.parametrize("file", digests())
async def test_documents_equal_the_real_servers(source: BuiltinSource, file: str) -> None:
    by_file = {name.replace("/", "."): name for name in await source.index()}
    document = await source.document(by_file[file])
    assert document is not None
    plain = without_prose(document)
    ours = {
        part: hashlib.sha256(json.dumps(plain[part], sort_keys=True).encode()).hexdigest()[:24]
        for part in digests()[file]
    }
    assert ours == digests()[file]


def whole_document(kinds: Iterable[CustomKind], group_version: GroupVersion) -> Any:
    first, *others = custom_parts(kinds, group_version)
    for part in others:
        first["paths"].update(part["paths"])
        first["components"]["schemas"].update(part["components"]["schemas"])
    return first


async def written(source: DocumentSource) -> Any:
    return json.loads(b"".join(await swagger(source, JsonForm())))


async def test_the_index_lists_every_document_with_a_hash(source: BuiltinSource) -> None:
    index = await source.index()
    assert {name.replace("/", ".") for name in index} == set(digests())
    assert len(set(index.values())) == len(index)


async def test_swagger_has_the_real_servers_paths_definitions_and_parameters(source: BuiltinSource) -> None:
    document = await written(source)
    facts = json.loads((FACTS / "swagger.json").read_text())
    for part in ("paths", "definitions"):
        assert hashlib.sha256("\n".join(sorted(document[part])).encode()).hexdigest() == facts[part]
    assert without_prose(document["parameters"]) == facts["parameters"]
    assert document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    assert (
        len(
            document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"][
                "x-kubernetes-group-version-kind"
            ]
        )
        == 62
    )


async def test_joined_sources_prefer_the_first(source: BuiltinSource) -> None:
    class Other(SinglePartSource):
        async def index(self) -> dict[str, str]:
            return {"version": "X", "apis/example.com/v1": "Y"}

        async def document(self, name: str) -> Any:
            return {"name": name} if name in await self.index() else None

    joined = JoinedSource([source, Other()])
    index = await joined.index()
    assert index["version"] == (await source.index())["version"]
    assert index["apis/example.com/v1"] == "Y"
    assert await document_of(joined, "apis/example.com/v1") == {"name": "apis/example.com/v1"}
    assert await document_of(joined, "nope") is None


def test_operation_ids_are_upstreams() -> None:
    assert operation_id("list", "rbac.authorization.k8s.io", "v1", "Role") == "listRbacAuthorizationV1Role"
    assert operation_id("read", "", "v1", "NamespacedPod") == "readCoreV1NamespacedPod"
    assert tag("flowcontrol.apiserver.k8s.io", "v1") == "flowcontrolApiserver_v1"


CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"template": {"type": "object", "x-kubernetes-embedded-resource": True}},
        },
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
    },
}


def test_a_custom_resource_is_described_with_the_fields_of_every_resource() -> None:
    kind = CustomKind("Widget", "WidgetList", "widgets", True, SCHEMA, status=True, scale=True)
    document = whole_document([kind], GroupVersion("g.example.com", "v1"))
    widget = document["components"]["schemas"]["com.example.g.v1.Widget"]
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "g.example.com", "kind": "Widget", "version": "v1"}]
    assert widget["properties"]["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]
    template = widget["properties"]["spec"]["properties"]["template"]
    assert template["required"] == ["kind", "apiVersion"]
    assert template["properties"]["kind"]["description"].startswith(
        "kind is a string value representing the type of this object."
    )
    assert template["properties"]["apiVersion"]["description"].endswith(
        "this representation of an object. More info: " + CONVENTIONS
    )
    item = document["paths"]["/apis/g.example.com/v1/namespaces/{namespace}/widgets/{name}"]
    assert item["patch"]["operationId"] == "patchGExampleComV1NamespacedWidget"
    assert [p["name"] for p in item["patch"]["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    options = document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][
        "x-kubernetes-group-version-kind"
    ]
    assert (len(options), options[0]["group"], options[-1]["group"]) == (55, "", "storagemigration.k8s.io")
    assert {path.rpartition("/")[2] for path in document["paths"]} == {"widgets", "{name}", "status", "scale"}
    assert not any("/watch/" in path for path in document["paths"])


def test_a_custom_resource_is_described_with_its_examples_documents_and_selectable_fields() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string", "example": "e", "externalDocs": {"url": "u"}}},
    }
    kind = CustomKind("Widget", "WidgetList", "widgets", True, schema, selectable=("a", "b.c"))
    schemas = whole_document([kind], GroupVersion("g.example.com", "v1"))["components"]["schemas"]
    assert schemas["com.example.g.v1.Widget"]["properties"]["a"] == schema["properties"]["a"]
    for name in ("Widget", "WidgetList"):
        assert schemas[f"com.example.g.v1.{name}"]["x-kubernetes-selectable-fields"] == [
            {"fieldPath": "a"},
            {"fieldPath": "b.c"},
        ]


def test_every_reference_of_a_custom_document_is_there() -> None:
    kinds = [CustomKind("Thing", "ThingList", "things", False, None)]
    document = whole_document(kinds, GroupVersion("example.com", "v1"))
    text = json.dumps(document)
    names = set(document["components"]["schemas"])
    references = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert {"com.example.v1.Thing", "com.example.v1.ThingList"} <= references <= names


async def test_swagger_names_what_an_endpoint_consumes_unless_it_answers_a_mere_text(source: BuiltinSource) -> None:
    paths = (await written(source))["paths"]
    assert paths["/version/"]["get"]["consumes"] == ["application/json"]
    assert not [
        path for path in ("/.well-known/openid-configuration/", "/openid/v1/jwks/") if "consumes" in paths[path]["get"]
    ]


async def test_swagger_leaves_out_of_custom_schemas_what_old_kubectl_cannot_cope_with() -> None:
    """As v1.37.1 publishes the same definition."""
    fields = {
        "n": {"type": "string", "nullable": True},
        "opt": {
            "type": "object",
            "nullable": True,
            "required": ["x"],
            "properties": {"x": {"type": "string", "nullable": True}},
        },
        "ios": {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "true"}]},
        "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "any": {
            "type": "object",
            "properties": {"q": {"type": "integer"}},
            "x-kubernetes-preserve-unknown-fields": True,
        },
    }
    spec = {"type": "object", "required": ["n", "ios"], "properties": fields}
    foo = CustomKind("Foo", "FooList", "foos", True, {"type": "object", "properties": {"spec": spec}})
    anything = CustomKind(
        "Any",
        "AnyList",
        "anys",
        True,
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        selectable=("a",),
    )

    class Custom(SinglePartSource):
        async def index(self) -> dict[str, str]:
            return {"apis/example.com/v1": "X"}

        async def document(self, name: str) -> Any:
            return whole_document([foo, anything], GroupVersion("example.com", "v1"))

    definitions = (await written(Custom()))["definitions"]
    gvk = [{"group": "example.com", "kind": "Any", "version": "v1"}]
    selectable = [{"fieldPath": "a"}]
    assert definitions["com.example.v1.Any"] == {
        "type": "object",
        "x-kubernetes-group-version-kind": gvk,
        "x-kubernetes-selectable-fields": selectable,
    }
    assert definitions["com.example.v1.Foo"]["properties"]["spec"] == {
        "type": "object",
        "required": ["ios"],
        "properties": {
            "n": {},
            "opt": {"required": ["x"]},
            "ios": {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "true"}]},
            "emb": {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            "any": {"x-kubernetes-preserve-unknown-fields": True},
        },
    }


class Kinds(SinglePartSource):
    """A group-version whose document comes in one part, or one for each kind."""

    def __init__(self, *, separate: bool) -> None:
        schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": True}}}
        self.kinds = [
            CustomKind(f"Foo{i}", f"Foo{i}List", f"foo{i}s", True, schema, status=bool(i), scale=True) for i in range(3)
        ]
        self.separate = separate

    async def index(self) -> dict[str, str]:
        return {"apis/example.com/v1": "X"}

    async def document(self, name: str) -> Any:
        return whole_document(self.kinds, GroupVersion("example.com", "v1"))

    async def parts(self, name: str) -> Any:
        for kinds in [[kind] for kind in self.kinds] if self.separate else [self.kinds]:
            yield whole_document(kinds, GroupVersion("example.com", "v1"))


async def test_a_document_in_parts_is_the_whole_one(source: BuiltinSource) -> None:
    whole, separate = JoinedSource([source, Kinds(separate=False)]), JoinedSource([source, Kinds(separate=True)])
    name = "apis/example.com/v1"
    pieces = await encode_v3(separate, name, JsonFormV3())
    assert pieces is not None
    assert json.loads(b"".join(await join_small(pieces))) == await document_of(whole, name)
    assert await written(separate) == await written(whole)
    assert b"".join(await swagger(separate, ProtobufForm())) == b"".join(await swagger(whole, ProtobufForm()))


class Colliding(SinglePartSource):
    """A group-version whose definition has the name of a built-in one."""

    GROUP = GroupVersion("apiextensions.apis.pkg.apiextensions-apiserver.k8s.io", "v1")

    async def index(self) -> dict[str, str]:
        return {f"apis/{self.GROUP}": "X"}

    async def document(self, name: str) -> Any:
        schema = {"type": "object", "properties": {"probe": {"type": "boolean"}}}
        kind, plural = "CustomResourceDefinition", "customresourcedefinitions"
        return whole_document([CustomKind(kind, f"{kind}List", plural, False, schema, status=False)], self.GROUP)


async def test_a_custom_definition_with_the_name_of_a_builtin_one_is_renamed(source: BuiltinSource) -> None:
    document, builtin = await written(JoinedSource([source, Colliding()])), await written(source)
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    added = {key: value for key, value in document["definitions"].items() if key not in builtin["definitions"]}
    assert document["definitions"][name] == builtin["definitions"][name]
    assert sorted(added) == [f"{name}List_v2", f"{name}_v2"]
    assert "probe" in added[f"{name}_v2"]["properties"]
    assert added[f"{name}List_v2"]["properties"]["items"]["items"]["$ref"] == f"#/definitions/{name}_v2"
    body, *_ = document["paths"][f"/apis/{Colliding.GROUP}/customresourcedefinitions"]["post"]["parameters"]
    assert body["schema"]["$ref"] == f"#/definitions/{name}_v2"


@pytest.mark.parametrize("name", ["api/v1", "apis/apps", "version", "openid/v1/jwks", "apis/example.com/v1"])
async def test_a_document_that_is_handed_over_arrives_as_it_was(source: BuiltinSource, name: str) -> None:
    """The network may deliver the document in pieces of any size."""
    sources = JoinedSource([source, Kinds(separate=True)])
    writer = BufferWriter()
    answer = await hand_over(sources, name)
    assert isinstance(answer, StreamResponse)
    await answer.run(writer)
    body = b"".join(writer.parts)
    assert max(map(len, body.splitlines())) < 300_000

    async def chunks(size: int) -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    for size in (509, 65_536):
        assert await merged(received_parts(chunks(size))) == await document_of(sources, name)
    assert (await hand_over(source, "nope")).status == 404


@pytest.mark.parametrize("form", [JsonFormV3, ProtobufFormV3])
async def test_documents_are_written_alike_in_one_part_or_many(source: BuiltinSource, form: type[FormV3]) -> None:
    name = "apis/example.com/v1"
    found = [
        await encode_v3(JoinedSource([source, Kinds(separate=separate)]), name, form()) for separate in (False, True)
    ]
    first, second = (b"".join(pieces or ()) for pieces in found)
    assert first == second
    assert await encode_v3(source, "nope", form()) is None


async def test_pieces_lose_nothing_and_are_sent_in_writes_worth_it() -> None:
    data = bytes(range(256)) * 2000
    pieces = await join_small([data[:5], data[5:9], data[9:300_000], b"", data[300_000:300_001], data[300_001:]])
    assert b"".join(pieces) == data
    assert [len(piece) for piece in pieces] == [9, 299_991, 1, 211_999]
    assert b"".join(join_to_chunks(pieces)) == data
    assert [len(piece) for piece in join_to_chunks([b"x" * 1000] * 300)] == [132_000, 132_000, 36_000]
    assert await join_small([]) == [b""]


async def test_operations_and_parameters_are_described_as_upstream_does(source: BuiltinSource) -> None:
    document = await written(source)
    paths = document["paths"]
    item = paths["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert item["get"]["description"] == "read the specified Pod"
    assert paths["/api/v1/namespaces/{namespace}/events"]["post"]["description"] == "create an Event"
    assert paths["/api/v1/namespaces/{namespace}/endpoints/{name}"]["delete"]["description"] == "delete Endpoints"
    assert paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"]["description"].endswith(
        "of the specified Deployment"
    )
    assert paths["/api/v1/services"]["get"]["description"] == "list or watch objects of kind Service"
    assert item["parameters"][0]["description"] == "name of the Pod"
    assert document["parameters"]["watch-XNNPZGbK"]["description"].startswith(
        "Watch for changes to the described resources"
    )
    assert (
        document["parameters"]["stdin-sEFnN3IS"]["description"]
        != document["parameters"]["stdin-PSzNhyUC"]["description"]
    )
    assert all(
        o["responses"]["401"] == {"description": "Unauthorized"}
        for p in paths.values()
        for m, o in p.items()
        if m != "parameters"
    )


async def test_a_description_explains_enum_values(source: BuiltinSource) -> None:
    document = await source.document("apis/apps/v1")
    assert document is not None
    schemas = document["components"]["schemas"]
    text = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["description"]
    ends = (
        'Possible enum values:\n - `"SCTP"` is the SCTP protocol.\n - `"TCP"` is the TCP protocol.\n'
        ' - `"UDP"` is the UDP protocol.'
    )
    assert text.endswith(ends)
    assert schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]["description"].startswith(
        "Quantity is a fixed-point representation"
    )
