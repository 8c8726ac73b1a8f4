"""Schemas of built-in types in OpenAPI v3, with descriptions if the package was built with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.openapi.operations import META, REF
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.types.definitions import raw
from tetrapod.machinery.types.descriptions import Texts

_EVERYWHERE: Final = frozenset({META + "DeleteOptions", META + "WatchEvent"})
_ENUM_SECTION: Final = "Possible enum values:"


def schemas_for(definitions: Iterable[str], group_version: GroupVersion | None = None) -> dict[str, Object]:
    """Return new schemas by name, sorted, including those that they reference.

    Args:
        definitions: the names of the schemas.
        group_version: the group-version of the document, which is added to the kinds of DeleteOptions and WatchEvent;
            None to add nothing.

    Raises:
        KeyError: a name has no schema.
    """
    texts = Texts()
    schemas: dict[str, Object] = {}
    pending = list(definitions)
    enums = feature_gates.enabled("OpenAPIEnums")
    while pending:
        name = pending.pop()
        if name in schemas:
            continue
        schema = raw(name)
        pending += _references(schema)
        expanded = _expand_definition(schema, *texts.of(name))
        schemas[name] = expanded if enums else _without_enums(expanded)
        if name in _EVERYWHERE and group_version is not None and group_version.group:
            schemas[name]["x-kubernetes-group-version-kind"].append(_gvk(group_version, name.rpartition(".")[2]))
    return dict(sorted(schemas.items()))


def _gvk(group_version: GroupVersion, kind: str) -> Object:
    return {"group": group_version.group, "kind": kind, "version": group_version.version}


def references(document: Any) -> set[str]:
    """Return the names of the schemas that a part of an OpenAPI v3 document references directly.

    The walk has no limit of nesting: that of `orjson.dumps` would reject documents that `orjson.loads` accepts.
    """
    names: set[str] = set()
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and reference.startswith(REF):
                names.add(reference.removeprefix(REF))
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return names


def _references(schema: Object) -> list[str]:
    """Return the names of the schemas that a schema in compact form (of the data files) references directly.

    The value of `$ref` in this form is the name of a schema. A property that is itself named `$ref` is not a reference.
    """
    names = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            names += _references(schema[key])
    for child in schema.get("properties", {}).values():
        names += _references(child)
    return names


def _expand_definition(schema: Object, text: str, fields: dict[str, str]) -> Object:
    expanded: Object = {"description": text} if text else {}
    for key, value in schema.items():
        if key == "properties":
            expanded[key] = {name: _expand_field(child, fields.get(name, "")) for name, child in value.items()}
        elif key in ("items", "additionalProperties"):
            expanded[key] = _expand(value)
        else:
            expanded[key] = value
    return expanded


def _expand_field(schema: Object, text: str) -> Object:
    """Convert the schema of a field from the compact form of the data files to OpenAPI v3.

    A reference becomes `allOf` with the reference as its only element, as upstream. The key `b` in the compact schema
    marks references that upstream leaves bare if they have no description.

    Args:
        schema: the schema in compact form.
        text: the description of the field; "" for none.
    """
    expanded = _expand(schema)
    if "$ref" in expanded and (text or "b" not in schema):
        expanded = {"allOf": [expanded]}
    return {"description": text, **expanded} if text else expanded


def _expand(schema: Object) -> Object:
    expanded: Object = {}
    for key, value in schema.items():
        if key in ("items", "additionalProperties") and isinstance(value, dict):
            expanded[key] = _expand(value)
        elif key not in ("$ref", "p", "b"):
            expanded[key] = value
    if "$ref" in schema:
        reference = {"$ref": REF + schema["$ref"]}
        return {"allOf": [reference], **expanded} if expanded else reference
    return expanded


def _without_enums(schema: Object) -> Object:
    """Return a copy of a schema in OpenAPI v3 without enum values, and without their meanings in descriptions.

    Upstream: staging/src/k8s.io/apiserver/pkg/util/openapi/enablement.go, pruneEnums
    """
    copied: Object = {}
    for key, value in schema.items():
        if key == "description" and _ENUM_SECTION in value:
            value = value.partition(_ENUM_SECTION)[0].strip()
        elif key == "properties":
            value = {name: _without_enums(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            value = _without_enums(value)
        elif key == "allOf":
            value = [_without_enums(child) for child in value]
        if key != "enum" and (key, value) != ("description", ""):
            copied[key] = value
    return copied
