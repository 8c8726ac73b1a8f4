"""Types of kinds: a structural schema as CustomResourceDefinitions have them, or a pydantic model, whose JSON schema is made one."""

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


def structural_schema(given: Any) -> dict[str, Any]:
    """`given` is a JSON schema of the whole object, or a class with `model_json_schema()`.

    Raises:
        ValueError: what a structural schema cannot say: recursion, tuples, unions other than with null.
    """
    document = given.model_json_schema() if hasattr(given, "model_json_schema") else given
    schema = _Converter(document.get("$defs") or {}).convert(document, "")
    schema.setdefault("type", "object")
    schema["properties"] = {**_ROOT, **(schema.get("properties") or {})}
    return schema


class _Converter:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._within: list[str] = []

    def convert(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "$ref" in schema:
            return self._refer(schema, path)
        if "prefixItems" in schema:
            raise ValueError(f"{path or 'schema'}: tuples have no structural schema")
        found = {key: value for key, value in schema.items() if key not in _DROPPED}
        if alternatives := found.pop("anyOf", None):
            found = {**self._or_null(alternatives, path), **found}
        for exclusive, bound in _BOUNDS.items():
            if isinstance(limit := found.get(exclusive), int | float) and not isinstance(limit, bool):
                found[bound], found[exclusive] = limit, True
        if "const" in found:
            found["enum"] = [found.pop("const")]
        if properties := found.get("properties"):
            found["properties"] = {name: self.convert(value, f"{path}.{name}") for name, value in properties.items()}
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = self.convert(found[key], f"{path}[]")
        if found.get("additionalProperties") is True:
            del found["additionalProperties"]
            found["x-kubernetes-preserve-unknown-fields"] = True
        if found.get("additionalProperties") is False:
            del found["additionalProperties"]  # what a schema does not name is pruned, or refused where a client wants it so
        if found.get("default", 0) is None:
            del found["default"]
        if "type" not in found and not found.get("x-kubernetes-int-or-string"):
            found["x-kubernetes-preserve-unknown-fields"] = True
        return found

    def _refer(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        name = schema["$ref"].rpartition("/")[2]
        if name in self._within:
            raise ValueError(f"{path or 'schema'}: {name} contains itself, which no structural schema can say")
        self._within.append(name)
        found = self.convert({**self._definitions[name], **{k: v for k, v in schema.items() if k != "$ref"}}, path)
        self._within.pop()
        return found

    def _or_null(self, alternatives: list[Mapping[str, Any]], path: str) -> dict[str, Any]:
        others = [one for one in alternatives if one.get("type") != "null"]
        if len(others) == 1:
            return {**self.convert(others[0], path), "nullable": True}
        if sorted(str(one.get("type")) for one in others) == ["integer", "string"]:
            return {"x-kubernetes-int-or-string": True}
        raise ValueError(f"{path or 'schema'}: a union of types has no structural schema")
