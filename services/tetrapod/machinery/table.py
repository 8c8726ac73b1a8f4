"""Tables and PartialObjectMetadata: what `kubectl get` and metadata clients ask for instead of objects.

Endpoints call these for one object, a page of a list, or a watch event. Follows k8s.io/apiserver/pkg/registry/rest/table.go,
endpoints/handlers/response.go and apis/meta/v1/types.go. The convertor is the registry's `TableConvertor`; only its shape matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

META_V1: Final = "meta.k8s.io/v1"
INCLUDE_VALUES: Final = ("", "Metadata", "Object", "None")
NAME_DESCRIPTION: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to "
    "request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and "
    "configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_DESCRIPTION: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set "
    "in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and "
    "is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


class TableColumn(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def description(self) -> str: ...


class Convertor(Protocol):
    @property
    def columns(self) -> Sequence[TableColumn]: ...
    @property
    def row(self) -> Callable[[Object], list[Any]]: ...
    @property
    def conditions(self) -> Callable[[Object], list[Object]] | None: ...


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class _DefaultConvertor:
    """Name and Created At, for kinds without columns of their own."""

    columns: Sequence[_Column]
    row: Callable[[Object], list[Any]]
    conditions: Callable[[Object], list[Object]] | None = None


def _default_row(obj: Object) -> list[Any]:
    metadata = obj.get("metadata") or {}
    return [metadata.get("name") or "", metadata.get("creationTimestamp")]


DEFAULT_CONVERTOR: Final[Convertor] = _DefaultConvertor(
    (
        _Column("Name", format="name", description=NAME_DESCRIPTION),
        _Column("Created At", type="date", description=CREATED_DESCRIPTION),
    ),
    _default_row,
)


def validate_include_object(value: str) -> list[FieldError]:
    if value in INCLUDE_VALUES:
        return []
    return [field.invalid("includeObject", value, "must be 'Metadata', 'Object', 'None', or empty")]


def column_definitions(convertor: Convertor | None) -> list[Object]:
    """The header of a table; all but the first table of a watch go without (null)."""
    return [
        {"name": c.name, "type": c.type, "format": c.format, "description": c.description, "priority": c.priority}
        for c in (convertor or DEFAULT_CONVERTOR).columns
    ]


def row(obj: Object, convertor: Convertor | None, include: str = "Metadata", api_version: str = META_V1) -> Object:
    """One object as a row; `api_version` is the table's, which the metadata inside shares."""
    use = convertor or DEFAULT_CONVERTOR
    made: Object = {"cells": use.row(obj)}
    if use.conditions is not None and (conditions := use.conditions(obj)):
        made["conditions"] = conditions
    if include == "Object":
        made["object"] = obj
    elif include == "None":
        made["object"] = None
    else:
        made["object"] = partial_object_metadata(obj, api_version)
    return made


def table(
    objects: Iterable[Object],
    convertor: Convertor | None,
    *,
    include: str = "Metadata",
    metadata: Mapping[str, Any] | None = None,
    headers: bool = True,
    api_version: str = META_V1,
) -> Object:
    """A Table of these objects. `metadata` is the list's (resourceVersion, continue, remainingItemCount); no rows are null."""
    rows = [row(obj, convertor, include, api_version) for obj in objects]
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": dict(metadata or {}),
        "columnDefinitions": column_definitions(convertor) if headers else None,
        "rows": rows or None,
    }


def table_of_object(
    obj: Object, convertor: Convertor | None, *, include: str = "Metadata", headers: bool = True, api_version: str = META_V1
) -> Object:
    """A Table of one object, which lends it its resourceVersion."""
    revision = (obj.get("metadata") or {}).get("resourceVersion")
    metadata = {"resourceVersion": revision} if revision else {}
    return table((obj,), convertor, include=include, metadata=metadata, headers=headers, api_version=api_version)


def partial_object_metadata(obj: Object, api_version: str = META_V1) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj.get("metadata") or {}}


def partial_object_metadata_list(
    objects: Iterable[Object], metadata: Mapping[str, Any] | None = None, api_version: str = META_V1
) -> Object:
    """Unlike other lists an empty one has null items; the items carry their kind."""
    items = [partial_object_metadata(obj, api_version) for obj in objects]
    return {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": dict(metadata or {}), "items": items or None}
