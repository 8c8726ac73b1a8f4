"""Definitions of custom resources that tests need to be there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def definition(group: str, plural: str, kind: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Namespaced, in version v1; without a schema, of any object."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or {"type": "object"}}}],
        },
    }
