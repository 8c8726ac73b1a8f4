"""Random structural schemas, and values for them."""

from __future__ import annotations

import copy
import random
from typing import Any, Final

Schema = dict[str, Any]
_FORMATS: Final = (
    *("date-time", "date", "duration", "uuid", "ipv4", "ipv6", "cidr", "email", "hostname", "uri", "byte", "password"),
    *("mac", "isbn", "hexcolor", "creditcard", "k8s-short-name", "bsonobjectid", "unknown-format"),
)
_STRINGS: Final = (
    *(
        "a",
        "abc",
        "",
        "A",
        "red",
        "x" * 12,
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        "1h",
        "10.0.0.1",
        "::1",
        "10.0.0.0/8",
    ),
    *(
        "a@b.example",
        "https://example.com",
        "AQ==",
        "00:11:22:33:44:55",
        "#fff",
        "a-b",
        "7d444840-9dc0-11d1-b245-5ffdce74fad2",
    ),
)
_LIST_RULES: Final = (
    "self.size() < 3",
    "self.all(x, has(x.a) || has(x.b))",
    "self.all(x, x != 'a')",
    "self.exists(x, true)",
    "self == oldSelf",
    "oldSelf.all(x, x in self)",
    "size(self) >= size(oldSelf)",
    "self.map(x, x).size() < 2",
    "self + oldSelf == oldSelf + self",
)
_MAP_RULES: Final = (
    "size(self) < 2",
    "self.all(key, key != 'x')",
    "'y' in self",
    "self == oldSelf",
    "self.all(key, self[key] == self[key])",
    "oldSelf.all(key, key in self)",
    "self.transformMap(k, v, v) == self",
)
_SCALAR_RULES: Final = {
    "string": ("self != 'a'", "self.size() < 3", "self.matches('^a')", "self == oldSelf", "self.startsWith('r')"),
    "integer": ("self > 1", "self % 2 == 0", "self >= oldSelf", "self != 7"),
    "number": ("self > 1.0", "self < 0.5", "self == oldSelf"),
    "boolean": ("self", "!self", "self || oldSelf"),
}


def definition(rng: random.Random, name: str) -> dict[str, Any]:
    """Return a CustomResourceDefinition of the group `NAME.example.net` with a random schema."""
    spec = _object(rng, 3)
    columns = [
        {
            "name": key,
            "type": rng.choice(("string", "integer", "number", "boolean", "date")),
            "jsonPath": f".spec.{key}",
        }
        for key in spec["properties"]
    ]
    schema: Schema = {
        "type": "object",
        "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if rng.random() < 0.3:
        schema["required"] = ["spec"]
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns,
        "subresources": {"status": {}},
    }
    scalars = [
        key for key, member in spec["properties"].items() if member.get("type") in ("string", "integer", "boolean")
    ]
    if scalars and rng.random() < 0.3:
        version["selectableFields"] = [{"jsonPath": f".spec.{key}"} for key in scalars[:2]]
    replicas = [key for key in scalars if spec["properties"][key]["type"] == "integer"]
    if replicas and rng.random() < 0.5:
        version["subresources"]["scale"] = {
            "specReplicasPath": f".spec.{replicas[0]}",
            "statusReplicasPath": ".status.r",
        }
    group = f"{name}.example.net"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version],
        },
    }


def changed(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a definition with one other part of the schema, or with another schema."""
    body = copy.deepcopy(body)
    schema = schema_of(body)
    spec = schema["properties"]["spec"]
    if rng.random() < 0.3:
        schema["properties"]["spec"] = _object(rng, 3)
        return body
    for name in rng.sample(sorted(spec["properties"]), rng.choice((1, 2))):
        spec["properties"][name] = _any(rng, 2)
    if rng.random() < 0.3:
        spec["properties"].pop(rng.choice(sorted(spec["properties"])))
    if rng.random() < 0.3:
        spec["required"] = rng.sample(sorted(spec["properties"]), 1)
    return body


def schema_of(body: dict[str, Any]) -> Schema:
    """Return the schema of the only version of a definition."""
    schema: Schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _object(rng: random.Random, depth: int) -> Schema:
    names = rng.sample("abcdefgh", rng.choice((2, 3, 4)))
    properties = {name: _any(rng, depth - 1) for name in names}
    schema: Schema = {"type": "object", "properties": properties}
    if rng.random() < 0.3:
        schema["required"] = [names[0]]
    if rng.random() < 0.15:
        schema["x-kubernetes-map-type"] = rng.choice(("atomic", "granular"))
    if rng.random() < 0.1:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if rng.random() < 0.2:
        schema["x-kubernetes-validations"] = [_object_rule(rng, names)]
    if rng.random() < 0.15:
        branches = [{"required": [names[0]]}, {"required": [names[1]]}]
        schema[rng.choice(("oneOf", "anyOf", "allOf"))] = branches
    if rng.random() < 0.1:
        schema["not"] = {"required": [names[-1]]}
    if rng.random() < 0.1:
        schema["minProperties"] = 1
    if rng.random() < 0.1:
        schema["maxProperties"] = 2
    return schema


def _object_rule(rng: random.Random, names: list[str]) -> dict[str, Any]:
    first, second = names[:2]
    rule: dict[str, Any] = {
        "rule": rng.choice(
            (
                f"has(self.{first})",
                f"has(self.{first}) == has(self.{second})",
                f"!has(self.{first}) || !has(oldSelf.{first}) || self.{first} == oldSelf.{first}",
                "size(self) > 1" if rng.random() < 0.1 else "true",
            )
        )
    }
    if rng.random() < 0.5:
        rule["message"] = "must hold"
    if rng.random() < 0.3:
        rule["reason"] = rng.choice(("FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"))
    if rng.random() < 0.3:
        rule["fieldPath"] = f".{first}"
    if rng.random() < 0.2:
        rule["messageExpression"] = f"'has: ' + string(has(self.{first}))"
    return rule


def _any(rng: random.Random, depth: int) -> Schema:
    kind = rng.random()
    if depth > 0 and kind < 0.2:
        schema = _object(rng, depth)
        if rng.random() < 0.3:
            schema["default"] = {}
    elif depth > 0 and kind < 0.45:
        schema = _array(rng, depth)
    elif depth > 0 and kind < 0.55:
        schema = {"type": "object", "additionalProperties": _any(rng, depth - 1)}
        if rng.random() < 0.3:
            schema["maxProperties"] = 3
            schema["x-kubernetes-validations"] = [{"rule": rng.choice(_MAP_RULES)}]
    elif kind < 0.6:
        schema = {"x-kubernetes-int-or-string": True}
        if rng.random() < 0.3:
            schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        if rng.random() < 0.3:
            schema["pattern"] = "^[0-9]+%?$"
        if rng.random() < 0.2:
            schema["x-kubernetes-validations"] = [
                {"rule": rng.choice(("type(self) == int ? self > 1 : self != 'x'", "self == oldSelf"))}
            ]
    elif kind < 0.63:
        schema = {"x-kubernetes-preserve-unknown-fields": True}
    elif kind < 0.66:
        schema = {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        }
        if rng.random() < 0.5:
            schema["properties"] = {"spec": _any(rng, depth - 1), "metadata": {"type": "object"}}
    else:
        schema = _scalar(rng)
    if rng.random() < 0.15:
        schema["nullable"] = True
    return schema


def _array(rng: random.Random, depth: int) -> Schema:
    form = rng.choice(("plain", "set", "map", "map", "atomic"))
    schema: Schema
    if form == "map":
        items = _object(rng, depth - 1)
        for keyword in ("nullable", "not", "oneOf", "anyOf", "allOf"):
            items.pop(keyword, None)
        keys = ["key"]
        items["properties"]["key"] = {"type": "string"}
        items["required"] = ["key"]
        if rng.random() < 0.4:
            items["properties"]["port"] = {"type": "integer", "default": 1}
            keys.append("port")
        if rng.random() < 0.3:
            items["x-kubernetes-validations"] = [
                {"rule": rng.choice(("self.key == oldSelf.key", "self == oldSelf", "self.key != 'k1'"))}
            ]
        schema = {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
        if rng.random() < 0.2:
            schema["x-kubernetes-validations"] = [{"rule": rng.choice(_LIST_RULES)}]
        if rng.random() < 0.2:
            schema["default"] = [{"key": "d"}]
        return schema
    schema = {"type": "array", "items": _scalar(rng) if form == "set" else _any(rng, depth - 1)}
    if rng.random() < 0.2:
        schema["maxItems"] = 4
        schema["x-kubernetes-validations"] = [{"rule": rng.choice(_LIST_RULES)}]
    if rng.random() < 0.1:
        schema["default"] = []
    if form != "plain":
        schema["x-kubernetes-list-type"] = form
    if rng.random() < 0.3:
        schema["maxItems"] = 3
    if rng.random() < 0.2:
        schema["minItems"] = 1
    if rng.random() < 0.1:
        schema["x-kubernetes-validations"] = [{"rule": "self.size() < 3", "message": "too long"}]
    return schema


def _scalar(rng: random.Random) -> Schema:
    kind = rng.choice(("string", "string", "integer", "number", "boolean"))
    schema: Schema = {"type": kind}
    if kind == "string":
        _constrain_string(schema, rng)
    elif kind != "boolean":
        _constrain_number(schema, rng)
    if rng.random() < 0.3 and schema.keys() == {"type"}:
        schema["default"] = _valid(schema)
    elif rng.random() < 0.25:
        schema["x-kubernetes-validations"] = [{"rule": rng.choice(_SCALAR_RULES[kind])}]
    return schema


def _valid(schema: Schema) -> Any:
    return {"string": "abc", "integer": 4, "number": 4.5, "boolean": True}[schema["type"]]


def _constrain_string(schema: Schema, rng: random.Random) -> None:
    choice = rng.random()
    if choice < 0.2:
        schema["enum"] = ["red", "green", "abc"]
    elif choice < 0.4:
        schema["format"] = rng.choice(_FORMATS)
    elif choice < 0.55:
        schema |= {"minLength": 2, "maxLength": 5}
    elif choice < 0.7:
        schema["pattern"] = "^[a-z]*$"


def _constrain_number(schema: Schema, rng: random.Random) -> None:
    choice = rng.random()
    if choice < 0.2:
        schema |= {"minimum": 1, "maximum": 10}
    elif choice < 0.3:
        schema |= {"minimum": 1, "exclusiveMinimum": True}
    elif choice < 0.4:
        schema["multipleOf"] = 2
    elif choice < 0.55:
        schema["format"] = rng.choice(("int32", "int64") if schema["type"] == "integer" else ("float", "double"))


def value(schema: Schema, rng: random.Random) -> Any:
    """Return a value that often, but not always, is valid."""
    if schema.get("nullable") and rng.random() < 0.2:
        return None
    if "enum" in schema and rng.random() < 0.8:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "string":
        return rng.choice(_STRINGS)
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        return rng.choice((0, 1, 2, 4, 7, 12, -1) if kind == "integer" else (0, 1, 1.5, 2.0, 12.5, -0.5))
    if kind == "array":
        return _list_value(schema, rng)
    if kind == "object":
        return _object_value(schema, rng)
    return (
        rng.choice((1, "25%", "x", {"a": [1]}, True))
        if "x-kubernetes-preserve-unknown-fields" in schema
        else rng.choice((1, "25%"))
    )


def _list_value(schema: Schema, rng: random.Random) -> Any:
    if rng.random() < 0.02:
        return rng.choice((None, {}, "x"))
    elements = [value(schema["items"], rng) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    if "x-kubernetes-list-map-keys" in schema:
        for index, element in enumerate(elements):
            element["key"] = f"k{index if rng.random() < 0.9 else 0}"
            if rng.random() < 0.3:
                element.pop("port", None)
    return elements


def _object_value(schema: Schema, rng: random.Random) -> Any:
    if "x-kubernetes-embedded-resource" in schema:
        return rng.choice(
            (
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}},
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "A b", "labels": {"a": "b c"}}},
                {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "unknown": 1}, "spec": 1},
                {"kind": "X", "metadata": {"labels": {"a": 1}}},
                {"apiVersion": "a/b/c", "kind": "X y", "spec": {}},
                {},
            )
        )
    inner = schema.get("additionalProperties")
    if inner:
        return {key: value(inner, rng) for key in rng.sample("xyz", rng.choice((0, 1, 2)))}
    required = schema.get("required", [])
    unknown = {"zz": rng.choice((1, None, {"a": 1}))} if rng.random() < 0.05 else {}
    return unknown | {
        name: value(member, rng)
        for name, member in schema.get("properties", {}).items()
        if name in required or rng.random() < 0.7
    }
