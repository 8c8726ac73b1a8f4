"""The schemas of built-in kinds, from the OpenAPI document of kube-apiserver."""

from __future__ import annotations

import json
import random
from typing import Any

from contract import golden

Schema = dict[str, Any]
_PREFIX = "#/definitions/"
_SCALARS: dict[str, list[Any]] = {
    "string": ["x", "a-b", "", "A b", "1", "example.com/x", "10Mi", "10.0.0.9"],
    "integer": [1, 0, -1, 7, 65536],
    "number": [1, 0.5],
    "boolean": [True, False],
}


class Schemas:
    """The definitions, by name and by apiVersion and kind."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._definitions: dict[str, Schema] = document["definitions"]
        self._kinds: dict[tuple[str, str], Schema] = {}
        self._collections: dict[tuple[str, str], str] = {}
        for definition in self._definitions.values():
            for gvk in definition.get("x-kubernetes-group-version-kind", []):
                version = "/".join(filter(None, (gvk["group"], gvk["version"])))
                self._kinds[version, gvk["kind"]] = definition
        for path, operations in document["paths"].items():
            operation = operations.get("post", {})
            gvk = operation.get("x-kubernetes-group-version-kind")
            if operation.get("x-kubernetes-action") == "post" and gvk and not path.endswith("}"):
                version = "/".join(filter(None, (gvk["group"], gvk["version"])))
                if "{name}" not in path:
                    self._collections.setdefault((version, gvk["kind"]), path.replace("{namespace}", "{ns}"))

    @classmethod
    def fetch(cls, client: golden.Server) -> Schemas:
        headers = {"Accept": "application/json", "Authorization": f"Bearer {client.tokens['admin']}"}
        _, _, payload = client.request("GET", "/openapi/v2", headers, None)
        assert isinstance(payload, bytes)
        return cls(json.loads(payload))

    def of(self, value: Any) -> Schema:
        """Return the schema of an object by its apiVersion and kind, and an empty one if it is unknown."""
        if not isinstance(value, dict):
            return {}
        return self._kinds.get((str(value.get("apiVersion")), str(value.get("kind"))), {})

    def collection(self, body: dict[str, Any]) -> str:
        """Return the path to which objects of a kind are posted, with `{ns}` for the namespace, or ""."""
        return self._collections.get((body["apiVersion"], body["kind"]), "")

    def at(self, schema: Schema, path: tuple[str | int, ...]) -> Schema:
        """Return the schema of a place below a schema."""
        for part in path:
            schema = self._resolved(schema)
            if isinstance(part, int):
                schema = schema.get("items", {})
            else:
                schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties") or {}
        return self._resolved(schema)

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].removeprefix(_PREFIX)]
        return schema

    def example(self, schema: Schema, rng: random.Random, depth: int = 3) -> Any:
        """Return some value of a schema: required members, and a few others down to a depth."""
        schema = self._resolved(schema)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        kind, form = schema.get("type", "object"), schema.get("format", "")
        if form == "int-or-string":
            return rng.choice([1, "25%", "x", 0, -1])
        if form in ("date-time", "byte"):
            return {"date-time": "2026-01-02T03:04:05Z", "byte": "AQ=="}[form]
        if kind == "array":
            return [self.example(schema.get("items", {}), rng, depth - 1) for _ in range(rng.choice((1, 1, 2)))]
        if kind != "object":
            return rng.choice(_SCALARS.get(kind, ["x"]))
        members: dict[str, Schema] = schema.get("properties", {})
        if not members:
            inner = schema.get("additionalProperties")
            return {"k": self.example(inner, rng, depth - 1)} if inner else {}
        wanted = set(schema.get("required", []))
        if depth > 0:
            wanted |= set(rng.sample(sorted(members), min(len(members), rng.choice((1, 2, 3)))))
        return {name: self.example(members[name], rng, depth - 1) for name in sorted(wanted) if name in members}
