"""Conversion of JSON schemas, such as those of pydantic models, to structural schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import re2

_ROOT: Final[Mapping[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}
_DROPPED: Final = frozenset(
    {"$defs", "$schema", "title", "discriminator", "examples", "deprecated", "readOnly", "writeOnly"}
)
_IMPOSSIBLE: Final = {
    "prefixItems": "tuples have no structural schema",
    "oneOf": "a union of types has no structural schema",
    "patternProperties": "patterns of keys have no structural schema",
    "propertyNames": "rules for keys have no structural schema; use x-kubernetes-validations",
    "$dynamicRef": "dynamic references have no structural schema",
}
_BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_TYPES: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_FORMATS: Final = frozenset(
    {"uri", "email", "hostname", "ipv4", "ipv6", "uuid", "uuid3", "uuid4", "uuid5", "byte", "password", "date"}
    | {"date-time", "int32", "int64", "float", "double"}
)
"""The formats of pydantic that Kubernetes validates alike. Its durations are those of Go, and not of ISO 8601."""


def structural_schema(source: Any, *, rules: bool = False) -> dict[str, Any]:
    """Return the structural schema of a kind, with properties for apiVersion, kind and metadata.

    Properties of the source with these names are replaced. `source` is not changed.

    Args:
        source: a JSON schema of the whole object, or a class with `model_json_schema()`.
        rules: whether rules in CEL are evaluated, as for custom resources. An enum that permits null becomes a rule,
            because the values of Kubernetes' enums are never null. Otherwise null is rejected.

    Raises:
        ValueError: the schema contains itself, tuples, rules for keys, a pattern that is not RE2's, or unions other
            than with null or of integer and string.
    """
    of_model = hasattr(source, "model_json_schema")
    document = source.model_json_schema() if of_model else source
    schema = _Converter(document.get("$defs") or {}, of_model=of_model, rules=rules).convert(document, "")
    schema.setdefault("type", "object")
    schema["properties"] = {**(schema.get("properties") or {}), **_ROOT}
    if required := [name for name in schema.pop("required", ()) if name not in _ROOT]:
        schema["required"] = required
    return schema


class _Converter:
    """A converter of JSON schemas that replaces each reference by its definition.

    Args:
        definitions: the schema's `$defs`: the definitions by name.
        of_model: whether the formats are those of pydantic, of which some differ from those of Kubernetes.
        rules: whether an enum that permits null becomes a rule in CEL.
    """

    def __init__(self, definitions: Mapping[str, dict[str, Any]], *, of_model: bool, rules: bool) -> None:
        self._definitions, self._of_model, self._rules = definitions, of_model, rules
        self._enclosing: list[str] = []

    def convert(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "$ref" in schema:
            return self._refer(schema, path)
        for key, reason in _IMPOSSIBLE.items():
            if key in schema:
                raise ValueError(f"{path or 'schema'}: {reason}")
        converted = {key: value for key, value in schema.items() if key not in _DROPPED}
        if alternatives := converted.pop("anyOf", None):
            converted = _merged(self._or_null(alternatives, path), converted)
        self._convert_rules(converted, path)
        if properties := converted.get("properties"):
            converted["properties"] = {
                name: self.convert(value, f"{path}.{name}") for name, value in properties.items()
            }
        for key in ("items", "additionalProperties"):
            if isinstance(converted.get(key), Mapping):
                converted[key] = self.convert(converted[key], f"{path}[]")
        self._convert_additional(converted, path)
        if converted.get("default", 0) is None:
            del converted["default"]
        if "type" not in converted and not converted.get("x-kubernetes-int-or-string"):
            converted["x-kubernetes-preserve-unknown-fields"] = True
        return converted

    def _convert_rules(self, converted: dict[str, Any], path: str) -> None:
        """Convert the rules for a value itself, in place: bounds, constants, enums, formats, patterns and sets."""
        for exclusive, bound in _BOUNDS.items():
            if isinstance(limit := converted.get(exclusive), int | float) and not isinstance(limit, bool):
                converted[bound], converted[exclusive] = limit, True
        if "const" in converted:
            converted["enum"] = [converted.pop("const")]
        if "enum" in converted:
            _convert_enum(converted, path)
            self._permit_null(converted)
        if self._of_model and converted.get("format") not in _FORMATS:
            converted.pop("format", None)
        if isinstance(pattern := converted.get("pattern"), str):
            try:
                re2.compile(pattern)
            except re2.error as error:
                raise ValueError(f"{path or 'schema'}: the pattern {pattern!r} is not one of RE2: {error}") from None
        if converted.pop("uniqueItems", False):
            converted.setdefault("x-kubernetes-list-type", "set")

    def _permit_null(self, converted: dict[str, Any]) -> None:
        """Replace an enum by a rule in CEL, in place, if the value may be null: rules are not evaluated for null."""
        if self._rules and converted.get("nullable") and (values := converted.pop("enum", None)):
            listed = ", ".join(json.dumps(value) for value in values)
            rule = {"rule": f"self in [{listed}]", "message": f"must be one of {listed}"}
            converted["x-kubernetes-validations"] = [*converted.get("x-kubernetes-validations", ()), rule]

    def _convert_additional(self, converted: dict[str, Any], path: str) -> None:
        """Convert `additionalProperties` in place. Kubernetes prunes unknown fields unless they are preserved."""
        additional = converted.get("additionalProperties")
        if additional is True:
            converted["x-kubernetes-preserve-unknown-fields"] = True
        elif isinstance(additional, Mapping) and converted.get("properties"):
            raise ValueError(f"{path or 'schema'}: an object with fields and additional typed ones is not structural")
        if not isinstance(additional, Mapping):
            converted.pop("additionalProperties", None)

    def _refer(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        name = schema["$ref"].rpartition("/")[2]
        if name in self._enclosing:
            raise ValueError(f"{path or 'schema'}: {name} contains itself, which a structural schema cannot express")
        self._enclosing.append(name)
        outer = {key: value for key, value in schema.items() if key != "$ref"}
        converted = self.convert(_merged(self._definitions[name], outer), path)
        self._enclosing.pop()
        return converted

    def _or_null(self, alternatives: list[Mapping[str, Any]], path: str) -> dict[str, Any]:
        others = [alternative for alternative in alternatives if alternative.get("type") != "null"]
        null = {"nullable": True} if len(others) < len(alternatives) else {}
        if len(others) == 1:
            converted = {**self.convert(others[0], path), **null}
            self._permit_null(converted)
            return converted
        if sorted(str(alternative.get("type")) for alternative in others) == ["integer", "string"]:
            if any(set(alternative) - {"type", "title"} for alternative in others):
                raise ValueError(f"{path or 'schema'}: rules for one type of int-or-string have no structural schema")
            return {"x-kubernetes-int-or-string": True, **null}
        raise ValueError(f"{path or 'schema'}: a union of types has no structural schema")


def _merged(inner: dict[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of both schemas. Those of `outer` replace those of `inner`, except that both have their rules."""
    rules = [*inner.get("x-kubernetes-validations", ()), *outer.get("x-kubernetes-validations", ())]
    return {**inner, **outer, **({"x-kubernetes-validations": rules} if rules else {})}


def _convert_enum(converted: dict[str, Any], path: str) -> None:
    """Give an enum the type of its values, in place. A value of null makes it nullable, and is removed."""
    types = {_TYPES[type(value)] for value in converted["enum"] if type(value) in _TYPES}
    if None in converted["enum"]:
        converted["nullable"] = True
        converted["enum"] = [value for value in converted["enum"] if value is not None]
    if types == {"integer", "string"}:
        converted.pop("type", None)
        converted["x-kubernetes-int-or-string"] = True
    elif len(types) == 1:
        converted.setdefault("type", types.pop())
    elif "type" not in converted:
        raise ValueError(f"{path or 'schema'}: an enum of several types has no structural schema")
