"""The OpenAPI v2 (Swagger 2.0) document of all resources, converted from the v3 documents on request.

Older clients and `kubectl apply` without server-side apply read it. Custom resources lose what Swagger 2.0 cannot
express.
Upstream: k8s.io/kube-openapi/pkg/builder; k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from tetrapod.generic.openapi.custom import CUSTOM_INFO, SELECTABLE
from tetrapod.generic.openapi.document_chunks import KINDS, Definition, Form
from tetrapod.generic.openapi.operations import CUSTOM_TYPES, META, REF
from tetrapod.generic.openapi.own_paths import own_paths
from tetrapod.generic.openapi.registered_versions import kinds_in_all_groups
from tetrapod.generic.openapi.shared_parameters import share
from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.openapi.v3 import INFO, SECURITY
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.types.definitions import INT_OR_STRING, QUANTITY, packages

_DROPPED: Final = frozenset({"default", "oneOf", "anyOf", "not", "nullable"})
_STRINGS: Final[dict[str, Object]] = {
    QUANTITY: {"type": "string"},
    INT_OR_STRING: {"type": "string", "format": "int-or-string"},
}
_MEDIA_TYPES: Final = (
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_IN_ALL_GROUPS: Final = {META + kind: kind for kind in ("DeleteOptions", "WatchEvent")}
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")


async def swagger(source: DocumentSource, form: Form) -> Iterator[bytes]:
    """Return the pieces of the Swagger document of all documents of a source, encoded by `form`.

    Paths and definitions are collected in encoded form, because as Python objects they need ten times as much memory.
    """
    collected = _Collected(form)
    for name in sorted(await source.index(), key=_collides):  # built-in definitions keep their names
        async for part in source.parts(name):
            if part["info"] == INFO or not _is_group(name):  # as upstream, only the group-versions of external servers
                if part["info"] not in (INFO, CUSTOM_INFO):  # of an external server: large documents take time
                    part = await asyncio.to_thread(own_paths, name, part)
                await collected.add(collected.renamed(part) if _collides(name) else part)
    tail = {
        "parameters": dict(sorted(collected.parameters.items())),
        "securityDefinitions": SECURITY,
        "security": [{"BearerToken": []}],
    }
    return form.document({"swagger": "2.0", "info": INFO}, collected.paths, collected.definitions, tail)


def _is_group(name: str) -> bool:
    return name.startswith("apis/") and name.count("/") == 1


def _collides(name: str) -> bool:
    """Return whether definitions of a document may have the same names as built-in ones.

    Names of custom definitions begin with the reversed group: for the group `api.k8s.io` with `io.k8s.api`, as built-in
    names do.

    Args:
        name: the name of the document, such as `apis/apps/v1`.
    """
    _, _, group_version = name.partition("/")
    group, _, version = group_version.partition("/")
    return ".".join((*reversed(group.split(".")), version)) in packages()


class _Collected:
    """The encoded paths and definitions of the documents that have been added, and their shared parameters."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._yield_timer = YieldTimer()
        self.paths: dict[str, bytes] = {}
        self.definitions: dict[str, Definition] = {}
        self.parameters: Object = {}

    async def add(self, document: Object) -> None:
        """Convert and encode a v3 document. Paths and definitions that exist already are not replaced."""
        consumes = CUSTOM_TYPES if document["info"] == CUSTOM_INFO else ("*/*",)
        for path, v3_item in document["paths"].items():
            if path not in self.paths:
                item = path_of(v3_item, consumes)
                share(path, item, self.parameters)
                self.paths[path] = self._form.path(path, item)
                await self._yield_timer.yield_if_due()
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            self._define(name, schema)
            await self._yield_timer.yield_if_due()

    def renamed(self, document: Object) -> Object:
        """Return a v3 document in which definitions that conflict with collected ones are renamed.

        Two definitions conflict if they have the same name and different schemas. The one in `document` and the
        references to it get the suffix "_v2".
        Upstream: k8s.io/kube-openapi/pkg/aggregator/aggregator.go, mergeSpecs.
        """
        schemas = document.get("components", {}).get("schemas", {})
        conflicting = [
            name
            for name, schema in schemas.items()
            if name in self.definitions and self.definitions[name].schema != self._encoded(name, schema)[0]
        ]
        encoded = orjson.dumps(document)
        for name in conflicting:
            for form in (f'"{REF}{name}"', f'"{name}":'):
                encoded = encoded.replace(form.encode(), form.replace(name, f"{name}_v2").encode())
        renamed: Object = orjson.loads(encoded)
        return renamed

    def _encoded(self, name: str, schema: Object) -> tuple[bytes, Sequence[Object] | None]:
        """Convert a v3 schema to v2 and encode it.

        Args:
            name: the name of the schema: Quantity and IntOrString become strings in v2.
            schema: the v3 schema.

        Returns:
            The encoded v2 schema without `x-kubernetes-group-version-kind`, and the value of this member, or None if it
                is missing.
        """
        converted = {**schema_of(schema), **_STRINGS.get(name, {})}
        kinds = converted.pop(KINDS, None)
        return self._form.schema(converted), kinds

    def _define(self, name: str, schema: Object) -> None:
        """Convert and add the v3 schema `schema` as the definition `name`.

        If several documents have the definition, the first schema is used, with the kinds of all.
        """
        known = self.definitions.get(name)
        if known is None:
            encoded, kinds = self._encoded(name, schema)
            if name in _IN_ALL_GROUPS:
                kinds = kinds_in_all_groups(_IN_ALL_GROUPS[name], servers=True)
            self.definitions[name] = Definition(encoded, None if kinds is None else list(kinds))
        elif known.kinds is not None:
            known.kinds.extend(kind for kind in schema.get(KINDS, ()) if kind not in known.kinds)


def convertible(document: object, forms: Sequence[Form]) -> bool:
    """Return whether a v3 document can be converted to Swagger and encoded in all of `forms` without an exception.

    Documents of external servers are checked, because an invalid one would make the Swagger document of all resources
    fail.
    """
    if not isinstance(document, dict) or "info" not in document:
        return False
    try:
        for path, item in document["paths"].items():
            converted = path_of(item)
            for form in forms:
                form.path(path, converted)
        for schema in (document.get("components") or {}).get("schemas", {}).values():
            for form in forms:
                form.schema({key: value for key, value in schema_of(schema).items() if key != KINDS})
            list(schema.get(KINDS, ()))
    except (AttributeError, LookupError, StopIteration, TypeError, ValueError):
        return False
    return True


def path_of(item: Object, consumes: Sequence[str] = ("*/*",)) -> Object:
    """Return a v3 path item as a new v2 path item.

    Args:
        item: the v3 path item.
        consumes: the value of `consumes` for operations that have an `x-kubernetes-action` but no body.
    """
    path_item: Object = {method: _operation(item[method], consumes) for method in _METHODS if method in item}
    if "parameters" in item:
        path_item["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return path_item


def _operation(operation: Object, consumes: Sequence[str]) -> Object:
    converted = {
        key: value for key, value in operation.items() if key not in ("requestBody", "responses", "parameters")
    }
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        converted["consumes"] = sorted(body["content"], key=_position)
        schema = next(iter(body["content"].values()))["schema"]
        parameter: Object = {"in": "body", "name": "body", "schema": schema_of(schema)}
        if body.get("required"):
            parameter["required"] = True
        parameters.insert(0, parameter)
    elif "x-kubernetes-action" in operation:
        converted["consumes"] = list(consumes)
    if parameters:
        converted["parameters"] = parameters
    produced = next(
        (response["content"] for response in operation["responses"].values() if "content" in response), ["*/*"]
    )
    converted["produces"] = sorted(produced, key=_position)
    converted["responses"] = {code: _response(response) for code, response in operation["responses"].items()}
    if "consumes" not in converted and any(
        "$ref" in response.get("schema", ()) for response in converted["responses"].values()
    ):
        # This is a document about the API; upstream omits this for routes that return text.
        converted["consumes"] = converted["produces"]
    converted["schemes"] = ["https"]
    return converted


def _position(media_type: str) -> int:
    """Return the sort key of a media type: upstream lists them in the order of their declaration, unknown ones last."""
    return _MEDIA_TYPES.index(media_type) if media_type in _MEDIA_TYPES else len(_MEDIA_TYPES)


def _response(response: Object) -> Object:
    converted: Object = {"description": response.get("description", "")}
    for content in response.get("content", {}).values():
        converted["schema"] = schema_of(content["schema"])
        break
    return converted


def _parameter(parameter: Object) -> Object:
    converted = {key: value for key, value in parameter.items() if key != "schema"}
    return {**converted, **parameter.get("schema", {})}


def schema_of(schema: Object) -> Object:
    """Return a v3 schema as a new v2 schema, without the keywords that v2 does not have.

    `allOf` with one reference becomes a reference; other combinations are omitted.
    """
    converted: Object = {}
    for key, value in schema.items():
        if key == "allOf":
            if len(value) == 1 and "$ref" in value[0]:
                converted["$ref"] = _v2_reference(value[0]["$ref"])
        elif key == "$ref" and isinstance(value, str):
            converted[key] = _v2_reference(value)
        elif key == "properties":
            converted[key] = {name: schema_of(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            converted[key] = schema_of(value)
        elif key not in _DROPPED:
            converted[key] = value
    _simplify(converted, schema)
    return converted


def _simplify(converted: Object, schema: Object) -> None:
    """Remove from a converted schema, in place, the parts that older versions of kubectl reject.

    They reject fields of schemas that preserve unknown fields or are nullable, and arrays of such schemas.

    Args:
        converted: the v2 schema.
        schema: the v3 schema that it was converted from.

    Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go
    """
    anything = schema.get("x-kubernetes-preserve-unknown-fields")
    kinds = schema.get(KINDS)
    if anything and kinds is not None:
        extensions: Object = {key: converted[key] for key in (KINDS, SELECTABLE) if key in converted}
        converted.clear()
        converted.update({"type": "object", **extensions})
        return
    if anything or schema.get("nullable"):
        for key in ("items", "properties"):
            converted.pop(key, None)
        if schema.get("nullable") or converted.get("type") == "object":
            converted.pop("type", None)
    if converted.get("type") == "array" and "items" not in converted:
        del converted["type"]
    kept = {} if anything or schema.get("nullable") else schema.get("properties") or {}
    unneeded = {name for name, child in kept.items() if child.get("nullable")}
    if anything and schema.get("x-kubernetes-embedded-resource"):
        unneeded |= {"apiVersion", "kind"}
    more = schema.get("additionalProperties")
    if unneeded or (isinstance(more, dict) and more.get("nullable")):
        required = (
            []
            if isinstance(more, dict) and more.get("nullable")
            else [n for n in converted.get("required") or () if n not in unneeded]
        )
        converted.pop("required", None)
        if required:
            converted["required"] = required


def _v2_reference(reference: str) -> str:
    return "#/definitions/" + reference.removeprefix(REF)
