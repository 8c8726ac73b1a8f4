"""The spec of a definition in the form of upstream's internal version, because error messages contain its field names.

Schema, subresources, columns and selectable fields that are equal in all versions are stored once at the top level.
With a single version, that applies to all of them.

Upstream: pkg/apis/apiextensions/v1,
Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tetrapod.extensions.validation.internal_types import INTERNAL_TYPES, schema_struct
from tetrapod.machinery.gvk import Object


@dataclass(slots=True)
class Version:
    """One version of a definition in internal form. Fields that are equal in all versions are in `Spec` and empty here.

    Attributes:
        schema: {"openAPIV3Schema": …}, or None.
        columns: additionalPrinterColumns.
        selectable: selectableFields.
        name: its name.
        served: whether it is served.
        storage: whether it is the storage version.
        deprecated: whether it is deprecated.
        deprecation_warning: the declared warning; None if it is not set.
        subresources: the subresources; None if they are not set.
    """

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
    """The spec of a definition in internal form.

    Attributes:
        version: the name of the first version.
        schema: {"openAPIV3Schema": …} if all versions have the same, else None. `subresources`, `columns` and
            `selectable` too have the value that is common to all versions, or are empty.
        null_versions: whether spec.versions is not set, which errors print differently from an empty list.
    """

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
        """Convert the spec of an apiextensions.k8s.io/v1 definition; its nested objects are shared."""
        versions = [_version(v) for v in spec.get("versions") or ()]
        converted = cls(
            group=spec.get("group") or "",
            scope=spec.get("scope") or "",
            names=spec.get("names") or {},
            conversion=spec.get("conversion"),
            preserve_unknown=bool(spec.get("preserveUnknownFields")),
            versions=versions,
            null_versions=spec.get("versions") is None,
        )
        if versions:
            converted.version = versions[0].name
            for part, empty in (("schema", None), ("subresources", None), ("columns", ()), ("selectable", ())):
                _lift(converted, part, empty)
        return converted

    def schemas(self) -> list[Object]:
        """Return every openAPIV3Schema; one that all versions share is returned once."""
        holders = [self.schema, *(v.schema for v in self.versions)]
        return [holder["openAPIV3Schema"] for holder in holders if holder and holder.get("openAPIV3Schema") is not None]

    def shown_versions(self) -> list[Object] | None:
        """Return the versions as Go prints upstream's internal structs, or None if spec.versions is not set."""
        return None if self.null_versions else shown(self.versions)

    def status_enabled(self) -> bool:
        """Return whether any version has a status subresource."""
        return any(has_status(s) for s in (self.subresources, *(v.subresources for v in self.versions)))


def has_status(subresources: Object | None) -> bool:
    """Return whether `subresources`, which may be None, includes status."""
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
    """Move a field from the versions to the top level of the spec, in place, if it is equal in all versions.

    Args:
        spec: the spec.
        part: the name of the attribute in `Version` and `Spec`.
        empty: the value that the versions then get.
    """
    first = getattr(spec.versions[0], part)
    if any(getattr(v, part) != first for v in spec.versions):
        return
    setattr(spec, part, first)
    for version in spec.versions:
        setattr(version, part, empty)


def shown(versions: Sequence[Version]) -> list[Object]:
    """Return versions as Go prints upstream's internal structs."""
    return [
        {
            "Name": v.name,
            "Served": v.served,
            "Storage": v.storage,
            "Deprecated": v.deprecated,
            "DeprecationWarning": v.deprecation_warning,
            "Schema": _schema(v.schema),
            "Subresources": None if v.subresources is None else INTERNAL_TYPES.struct("Subresources", v.subresources),
            "AdditionalPrinterColumns": INTERNAL_TYPES.structs("Column", list(v.columns)) or None,
            "SelectableFields": [{"JSONPath": s.get("jsonPath") or ""} for s in v.selectable] or None,
        }
        for v in versions
    ]


def _schema(holder: Object | None) -> Object | None:
    if holder is None:
        return None
    schema = holder.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": None if schema is None else schema_struct(schema)}
