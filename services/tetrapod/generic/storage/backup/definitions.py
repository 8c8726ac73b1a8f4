"""Conversion of CustomResourceDefinitions from v1beta1, the version in which kube-apiserver still stores them, to v1.

Fields that are the same for all versions are at the top level of v1beta1.
Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go and v1beta1/defaults.go
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.generic.storage.encoding import encode
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.gvk import Object

VERSION: Final = "apiextensions.k8s.io/v1beta1"
_SHARED: Final = {
    "subresources": "subresources",
    "validation": "schema",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def current(stored: bytes) -> bytes:
    """Return a stored CustomResourceDefinition in the version that Tetrapod stores (v1), any other value unchanged.

    Raises:
        ValueError: the value contains the name of v1beta1, but is not JSON.
    """
    if VERSION.encode() not in stored:
        return stored
    obj: Object = orjson.loads(stored)
    if obj.get("apiVersion") != VERSION:
        return stored
    obj = to_v1(obj)
    return encode(obj, obj["apiVersion"], obj["kind"])


def to_v1(definition: Object) -> Object:
    """Convert a v1beta1 CustomResourceDefinition to v1, and set the defaults of v1beta1.

    The argument is not changed. The result shares unchanged parts with it.
    """
    spec = dict(definition.get("spec") or {})
    name = spec.pop("version", "")
    versions = [dict(version) for version in spec.get("versions") or ()]
    if not versions and name:
        versions = [{"name": name, "served": True, "storage": True}]
    for above, below in _SHARED.items():
        shared = spec.pop(above, None)
        for version in versions:
            if shared is not None:
                version[below] = copy_value(shared)
    for version in versions:
        if columns := version.get("additionalPrinterColumns"):
            version["additionalPrinterColumns"] = [_column(column) for column in columns]
    spec["versions"] = versions
    if spec.pop("preserveUnknownFields", None) is not False:
        spec["preserveUnknownFields"] = True
    spec["scope"] = spec.get("scope") or "Namespaced"
    spec["names"] = _names(spec.get("names") or {})
    spec["conversion"] = _conversion(spec.get("conversion") or {"strategy": "None"})
    status = dict(definition.get("status") or {})
    status["storedVersions"] = status.get("storedVersions") or [v["name"] for v in versions if v.get("storage")][:1]
    return {**definition, "apiVersion": "apiextensions.k8s.io/v1", "spec": spec, "status": status}


def _names(names: dict[str, Any]) -> dict[str, Any]:
    kind = names.get("kind") or ""
    defaults = {"singular": kind.lower(), "listKind": kind and f"{kind}List"}
    return {**names, **{key: names.get(key) or default for key, default in defaults.items()}}


def _column(column: dict[str, Any]) -> dict[str, Any]:
    return {"jsonPath" if name == "JSONPath" else name: value for name, value in column.items()}


def _conversion(conversion: dict[str, Any]) -> dict[str, Any]:
    converted = dict(conversion)
    client, versions = converted.pop("webhookClientConfig", None), converted.pop("conversionReviewVersions", None)
    versions = versions or ["v1beta1"]
    if converted.get("strategy") != "Webhook":
        return converted
    return {
        **converted,
        "webhook": {
            key: value for key, value in (("clientConfig", client), ("conversionReviewVersions", versions)) if value
        },
    }
