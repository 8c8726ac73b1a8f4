"""The table columns of CustomResourceDefinitions.

Upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _row(obj: Object) -> list[Any]:
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    names = spec.get("names") or {}
    versions = [
        v.get("name", "") + ("(storage)" if v.get("storage") else "")
        for v in spec.get("versions") or ()
        if v.get("served")
    ]
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [
        metadata.get("name", ""),
        spec.get("scope", ""),
        ",".join(sorted(versions)),
        metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z",
        spec.get("group", ""),
        names.get("kind", ""),
        ",".join(names.get("shortNames") or ()),
        any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions),
    ]


CUSTOM_RESOURCE_DEFINITIONS: Final = TableConvertor(
    (
        Column("Name", format="name"),
        Column("Scope"),
        Column("Versions"),
        Column("Created At", "date"),
        Column("Group", priority=1),
        Column("Kind", priority=1),
        Column("ShortNames", priority=1),
        Column("Established", "boolean", priority=1),
    ),
    _row,
    null_rows=True,
)
