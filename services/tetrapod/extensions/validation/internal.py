"""A definition's spec as upstream's internal version holds it, whose field names its error texts carry.

What all versions have in common (schema, subresources, columns, selectable fields) stands once, at the top; with a single
version that is everything. Upstream: Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_… of pkg/apis/apiextensions/v1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tetrapod.extensions.validation.gostructs import column_struct, schema_struct, subresources_struct
from tetrapod.machinery.gvk import Object


@dataclass(slots=True)
class Version:
    """`schema` is {"openAPIV3Schema": …}, or None where it stands at the top."""

    name: str
    served: bool
    storage: bool
    deprecated: bool
    deprecation_warning: str | None
    schema: Object | None
    subresources: Object | None
    columns: Sequence[Object]
    selectable: Sequence[Object]


@dataclass(slots=True)
class Spec:
    group: str
    scope: str
    names: Object
    conversion: Object | None
    preserve_unknown: bool
    versions: list[Version]
    version: str = ""
    schema: Object | None = None
    subresources: Object | None = None
    columns: Sequence[Object] = ()
    selectable: Sequence[Object] = ()
    null_versions: bool = False

    @classmethod
    def of(cls, spec: Object) -> Spec:
        versions = [_version(v) for v in spec.get("versions") or ()]
        found = cls(
            group=spec.get("group") or "",
            scope=spec.get("scope") or "",
            names=spec.get("names") or {},
            conversion=spec.get("conversion"),
            preserve_unknown=bool(spec.get("preserveUnknownFields")),
            versions=versions,
            null_versions=spec.get("versions") is None,
        )
        if versions:
            found.version = versions[0].name
            for part, empty in (("schema", None), ("subresources", None), ("columns", ()), ("selectable", ())):
                _lift(found, part, empty)
        return found

    def schemas(self) -> list[Object]:
        """Every openAPIV3Schema there is."""
        holders = [self.schema, *(v.schema for v in self.versions)]
        return [holder["openAPIV3Schema"] for holder in holders if holder and holder.get("openAPIV3Schema") is not None]

    def shown_versions(self) -> list[Object] | None:
        return None if self.null_versions else shown(self.versions)

    def status_enabled(self) -> bool:
        return any(has_status(s) for s in (self.subresources, *(v.subresources for v in self.versions)))


def has_status(subresources: Object | None) -> bool:
    return subresources is not None and subresources.get("status") is not None


def _version(version: Object) -> Version:
    return Version(
        name=version.get("name") or "",
        served=bool(version.get("served")),
        storage=bool(version.get("storage")),
        deprecated=bool(version.get("deprecated")),
        deprecation_warning=version.get("deprecationWarning"),
        schema=version.get("schema"),
        subresources=version.get("subresources"),
        columns=version.get("additionalPrinterColumns") or (),
        selectable=version.get("selectableFields") or (),
    )


def _lift(spec: Spec, part: str, empty: Any) -> None:
    first = getattr(spec.versions[0], part)
    if any(getattr(v, part) != first for v in spec.versions):
        return
    setattr(spec, part, first)
    for version in spec.versions:
        setattr(version, part, empty)


def shown(versions: Sequence[Version]) -> list[Object]:
    """The versions as a Go struct is printed as JSON."""
    return [
        {
            "Name": v.name,
            "Served": v.served,
            "Storage": v.storage,
            "Deprecated": v.deprecated,
            "DeprecationWarning": v.deprecation_warning,
            "Schema": _schema(v.schema),
            "Subresources": subresources_struct(v.subresources),
            "AdditionalPrinterColumns": [column_struct(c) for c in v.columns] or None,
            "SelectableFields": [{"JSONPath": s.get("jsonPath") or ""} for s in v.selectable] or None,
        }
        for v in versions
    ]


def _schema(holder: Object | None) -> Object | None:
    if holder is None:
        return None
    schema = holder.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": None if schema is None else schema_struct(schema)}
