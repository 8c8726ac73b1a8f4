"""Conversion of JSON schemas, such as those of pydantic models, to structural schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ROOT: Final[Mapping[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}
_DROPPED: Final = frozenset({"$defs", "title", "discriminator", "examples", "deprecated"})
_BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def structural_schema(source: Any) -> dict[str, Any]:
    """Return the structural schema of a kind, with properties for apiVersion, kind and metadata.

    `source` is not changed.

    Args:
        source: a JSON schema of the whole object, or a class with `model_json_schema()`.

    Raises:
        ValueError: the schema contains itself, tuples, or unions other than with null or of integer and string.
    """
    document = source.model_json_schema() if hasattr(source, "model_json_schema") else source
    schema = _Converter(document.get("$defs") or {}).convert(document, "")
    schema.setdefault("type", "object")
    schema["properties"] = {**_ROOT, **(schema.get("properties") or {})}
    return schema


class _Converter:
    """A converter of JSON schemas that replaces each reference by its definition.

    Args:
        definitions: the schema's `$defs`: the definitions by name.
    """

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._enclosing: list[str] = []

    def convert(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "$ref" in schema:
            return self._refer(schema, path)
        if "prefixItems" in schema:
            raise ValueError(f"{path or 'schema'}: tuples have no structural schema")
        converted = {key: value for key, value in schema.items() if key not in _DROPPED}
        if alternatives := converted.pop("anyOf", None):
            converted = {**self._or_null(alternatives, path), **converted}
        for exclusive, bound in _BOUNDS.items():
            if isinstance(limit := converted.get(exclusive), int | float) and not isinstance(limit, bool):
                converted[bound], converted[exclusive] = limit, True
        if "const" in converted:
            converted["enum"] = [converted.pop("const")]
        if properties := converted.get("properties"):
            converted["properties"] = {
                name: self.convert(value, f"{path}.{name}") for name, value in properties.items()
            }
        for key in ("items", "additionalProperties"):
            if isinstance(converted.get(key), Mapping):
                converted[key] = self.convert(converted[key], f"{path}[]")
        if converted.get("additionalProperties") is True:
            del converted["additionalProperties"]
            converted["x-kubernetes-preserve-unknown-fields"] = True
        if converted.get("additionalProperties") is False:
            del converted["additionalProperties"]  # unknown fields are pruned, or rejected if the client requests that
        if converted.get("default", 0) is None:
            del converted["default"]
        if "type" not in converted and not converted.get("x-kubernetes-int-or-string"):
            converted["x-kubernetes-preserve-unknown-fields"] = True
        return converted

    def _refer(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        name = schema["$ref"].rpartition("/")[2]
        if name in self._enclosing:
            raise ValueError(f"{path or 'schema'}: {name} contains itself, which a structural schema cannot express")
        self._enclosing.append(name)
        converted = self.convert({**self._definitions[name], **{k: v for k, v in schema.items() if k != "$ref"}}, path)
        self._enclosing.pop()
        return converted

    def _or_null(self, alternatives: list[Mapping[str, Any]], path: str) -> dict[str, Any]:
        others = [alternative for alternative in alternatives if alternative.get("type") != "null"]
        if len(others) == 1:
            return {**self.convert(others[0], path), "nullable": True}
        if sorted(str(alternative.get("type")) for alternative in others) == ["integer", "string"]:
            return {"x-kubernetes-int-or-string": True}
        raise ValueError(f"{path or 'schema'}: a union of types has no structural schema")
