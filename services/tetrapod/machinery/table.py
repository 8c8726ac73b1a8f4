"""`TableConvertor`: how objects of a kind become rows of a Table, which is what `kubectl get` asks for.

Upstream: TableConvertor of k8s.io/apiserver/pkg/registry/rest/rest.go, and table.go beside it, which has the default one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.machinery.gvk import Object

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


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. `format` is "name" for names; `priority` above 0 shows with -o wide only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class TableConvertor:
    """How objects of a kind become rows. `row` gives the cells of a (read-only) object; `conditions` marks ended rows.

    `of_list` is for kinds whose cells depend on the other objects of a list: given them all, it makes the `row` for that list.
    `order` is by what the rows of a list are sorted, where they are not in the list's own order.
    """

    columns: Sequence[Column]
    row: Callable[[Object], list[Any]]
    conditions: Callable[[Object], list[Object]] | None = None
    null_rows: bool = False  # no rows at all are null, not an empty list
    of_list: Callable[[Sequence[Object]], Callable[[Object], list[Any]]] | None = None
    order: Callable[[Object], tuple[Any, ...]] | None = None
    described: str = ""  # the built-in resource (`deployments.apps`) whose columns these are, where they do not say what they mean


def _name_and_creation(obj: Object) -> list[Any]:
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp")]


DEFAULT_TABLE: Final = TableConvertor(
    (
        Column("Name", format="name", description=NAME_DESCRIPTION),
        Column("Created At", type="date", description=CREATED_DESCRIPTION),
    ),
    _name_and_creation,
)
"""Of kinds without columns of their own."""
