"""The schemas of built-in types as `SchemaNode`, built at first use.

Each Go package is one file with one line for each definition; a line is parsed when its definition is needed. A
reference to another definition is a node that is filled in at first access, so that the use of one kind builds only the
nodes that its objects need.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

_ATTRIBUTES = tuple(name for name in SchemaNode.__slots__ if name != "definition")
_APIMACHINERY = "io.k8s.apimachinery.pkg."
QUANTITY = _APIMACHINERY + "api.resource.Quantity"
INT_OR_STRING = _APIMACHINERY + "util.intstr.IntOrString"
RAW_EXTENSION = _APIMACHINERY + "runtime.RawExtension"
FIELDS_V1 = _APIMACHINERY + "apis.meta.v1.FieldsV1"
APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_ANYTHING = frozenset(
    {RAW_EXTENSION, FIELDS_V1, *(APIEXTENSIONS + "JSON" + s for s in ("", "SchemaPropsOrArray", "SchemaPropsOrBool"))}
)
_ANYTHING |= {APIEXTENSIONS + "JSONSchemaPropsOrStringArray"}


@cache
def load(definition: str) -> SchemaNode:
    """Return the schema of a definition ("io.k8s.api.core.v1.PodSpec"), which is cached and shared.

    Raises:
        KeyError: the definition does not exist.
    """
    schema = raw(definition)
    node = node_of(schema)
    node.definition = definition
    if definition == QUANTITY:
        node.type, node.format = "string", "quantity"
    elif definition == INT_OR_STRING:
        node.int_or_string = True
    elif definition in _ANYTHING:
        node.preserve_unknown = True
        if "Or" in definition.rpartition(".")[2]:  # a schema or a list of schemas; `items` is used for both
            node.items = _lazy(APIEXTENSIONS + "JSONSchemaProps")
    return node


@cache
def schema_for(gvk: GroupVersionKind) -> SchemaNode:
    """Return the schema of a built-in kind, which is cached and shared.

    Raises:
        KeyError: the kind does not exist.
    """
    return load(definition_of(gvk))


def definition_of(gvk: GroupVersionKind) -> str:
    """Return the name of the definition of a built-in kind, such as "io.k8s.api.core.v1.Pod".

    Raises:
        KeyError: the kind does not exist.
    """
    kinds = _kinds()
    of_version = kinds.get(gvk.api_version)
    if of_version is None:
        raise KeyError(gvk)
    return of_version.get(gvk.kind) or kinds["*"][gvk.kind]


def kinds_of(api_version: str) -> dict[str, str]:
    """Return the names of the definitions in a built-in group-version, by kind; {} for an unknown group-version.

    Kinds that every group-version has, such as Status, are left out.
    """
    return _kinds().get(api_version, {})


def api_versions() -> list[str]:
    """Return the built-in group-versions."""
    return [api_version for api_version in _kinds() if api_version != "*"]


def raw(definition: str) -> dict[str, Any]:
    """Return a new copy of a definition's generated data.

    It has the keywords of OpenAPI, with these differences: `$ref` is the name of a definition; `p` is the presence of a
    field (see `SchemaNode.presence`); `b` marks a field that is a bare `$ref` in OpenAPI documents.

    Raises:
        KeyError: the definition does not exist.
    """
    package, _, name = definition.rpartition(".")
    schema: dict[str, Any] = orjson.loads(_package(package)[name])
    return schema


def names() -> list[str]:
    """Return the names of all definitions, sorted."""
    return sorted(f"{package}.{name}" for package in packages() for name in _package(package))


@cache
def packages() -> frozenset[str]:
    """Return the names of all packages of definitions ("io.k8s.api.core.v1")."""
    return frozenset(file.name.removesuffix(".types") for file in _data().iterdir() if file.name.endswith(".types"))


def _data() -> Any:
    return files(__package__).joinpath("data")


@cache
def _kinds() -> dict[str, dict[str, str]]:
    kinds: dict[str, dict[str, str]] = orjson.loads(_data().joinpath("kinds.json").read_bytes())
    return kinds


@cache
def _package(package: str) -> dict[str, bytes]:
    file = _data().joinpath(f"{package}.types")
    if not file.is_file():
        raise KeyError(package)
    lines = (line.partition(b" ") for line in file.read_bytes().splitlines())
    return {name.decode(): schema for name, _, schema in lines}


class _Reference(SchemaNode):
    """The schema of a field whose type is another definition.

    It has the attributes of that definition's schema, overridden by those of the field. They are filled in at first
    access.

    Args:
        definition: the name of the other definition.
        own: the OpenAPI keywords of the field, in the form that `raw` returns.
    """

    __slots__ = ("_own",)
    _own: dict[str, Any]

    def __init__(self, definition: str, own: dict[str, Any]) -> None:
        self.definition = definition
        self._own = own

    def __getattr__(self, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        target = load(self.definition)
        for attribute in _ATTRIBUTES:
            setattr(self, attribute, getattr(target, attribute))
        _put_keywords(self, self._own)
        return getattr(self, name)


_leaves: dict[str, SchemaNode] = {}


def _node(schema: dict[str, Any]) -> SchemaNode:
    """Return the schema node for a part of a definition's data, such as the schema of one field.

    Equal schemas share a node, unless they have items, properties or additionalProperties.

    Args:
        schema: the part, in the form that `raw` returns; it is modified.
    """
    reference = schema.pop("$ref", None)
    if reference is not None:
        if not schema:
            return _lazy(reference)
        return _Reference(reference, schema)
    if "items" in schema or "additionalProperties" in schema or "properties" in schema:
        return node_of(schema)
    key = repr(schema)
    if key not in _leaves:
        _leaves[key] = node_of(schema)
    return _leaves[key]


@cache
def _lazy(definition: str) -> SchemaNode:
    return _Reference(definition, {})


def node_of(schema: dict[str, Any]) -> SchemaNode:
    """Return a new schema node for a definition's data, which must have the form that `raw` returns."""
    node = SchemaNode(schema.get("type", ""))
    _put_keywords(node, schema)
    return node


def _put_keywords(node: SchemaNode, schema: dict[str, Any]) -> None:
    """Set the attributes of a schema node from the OpenAPI keywords in a definition's data."""
    if "properties" in schema:
        node.properties = {name: _node(child) for name, child in schema["properties"].items()}
    if "items" in schema:
        node.items = _node(schema["items"])
    if "additionalProperties" in schema:
        node.additional_properties = _node(schema["additionalProperties"])
    if "format" in schema:
        node.format = schema["format"]
    node.presence = schema.get("p", "")
    node.default = schema.get("default", NO_DEFAULT)
    if "required" in schema:
        node.required = tuple(schema["required"])
    if "enum" in schema:
        node.enum = tuple(schema["enum"])
    node.list_type = schema.get("x-kubernetes-list-type", node.list_type)
    node.map_type = schema.get("x-kubernetes-map-type", node.map_type)
    if "x-kubernetes-list-map-keys" in schema:
        node.list_map_keys = tuple(schema["x-kubernetes-list-map-keys"])
    node.patch_merge_key = schema.get("x-kubernetes-patch-merge-key", "")
    if "x-kubernetes-patch-strategy" in schema:
        node.patch_strategy = frozenset(schema["x-kubernetes-patch-strategy"].split(","))
