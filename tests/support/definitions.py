"""CustomResourceDefinitions for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(
    group: str, kind: str, *versions: dict[str, Any], scope: str = "Namespaced", plural: str = "", **names: Any
) -> dict[str, Any]:
    """Return a CustomResourceDefinition.

    Args:
        versions: if empty, one version v1 whose schema accepts anything.
        plural: if empty, the kind in lower case with an "s".
    """
    plural = plural or f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, **names},
            "versions": list(versions) or [version()],
        },
    }


def version(
    name: str = "v1", *, storage: bool = True, schema: Mapping[str, Any] = ANYTHING, **more: Any
) -> dict[str, Any]:
    """Return a served version of a CustomResourceDefinition."""
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}
