"""The part of an external server's document that belongs to one group-version, for the Swagger document of all.

Upstream: k8s.io/kube-openapi/pkg/aggregator/aggregator.go, FilterSpecByPathsWithoutSideEffects
"""

from __future__ import annotations

from tetrapod.generic.openapi.schemas import references
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
    unused = references(document) - references(filtered)
    components = document.get("components") or {}
    schemas = {key: schema for key, schema in components.get("schemas", {}).items() if key not in unused}
    return {**filtered, "components": {**components, "schemas": schemas}}
