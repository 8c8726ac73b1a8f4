"""The part of an external server's document that belongs to one group-version, for the Swagger document of all.

Upstream: k8s.io/kube-openapi/pkg/aggregator/aggregator.go, FilterSpecByPathsWithoutSideEffects
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tetrapod.generic.openapi.operations import REF
from tetrapod.machinery.gvk import Object


def own_paths(name: str, document: Object) -> Object:
    """Return a v3 document with only the paths below `/NAME/`, and without the schemas that only other paths use.

    Args:
        name: the name of the document, such as `apis/metrics.k8s.io/v1beta1`.
        document: the document, which is returned itself if it has no other paths.
    """
    kept = {path: item for path, item in document["paths"].items() if path.startswith(f"/{name}/")}
    if len(kept) == len(document["paths"]):
        return document
    filtered = {**document, "paths": kept}
    unused = set(_references(document)) - set(_references(filtered))
    components = document.get("components") or {}
    schemas = {key: schema for key, schema in components.get("schemas", {}).items() if key not in unused}
    return {**filtered, "components": {**components, "schemas": schemas}}


def _references(document: Object) -> Iterator[str]:
    """Yield the names of the schemas that a document references.

    The walk has no limit of nesting: that of `orjson.dumps` would reject documents that `orjson.loads` accepts.
    """
    pending: list[Any] = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and reference.startswith(REF):
                yield reference.removeprefix(REF)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
