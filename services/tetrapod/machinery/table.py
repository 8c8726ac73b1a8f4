"""`TableConvertor`: the conversion of objects to rows of a Table, which `kubectl get` requests.

Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go, TableConvertor, and table.go with the default convertor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tetrapod.machinery.gvk import Object

NAME_DESCRIPTION: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_DESCRIPTION: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table.

    Attributes:
        name: the header.
        type: the OpenAPI type of the cells.
        format: "name" for the column with the objects' names, otherwise "" or an OpenAPI format.
        priority: 0 for columns that are always shown; a column above 0 is shown only by `kubectl get -o wide`.
        description: the description of the column.
    """

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class TableConvertor:
    """The columns of a kind's Tables, and the functions that compute the rows.

    Args:
        columns: the columns.
        row: returns the cells of an object, one for each column: JSON values, and `TimedCell`s such as ages. It must
            not modify the object.
        conditions: returns the conditions of a row, which mark objects that have ended (such as completed pods).
        null_rows: whether `rows` of a Table without rows is null instead of an empty list.
        of_list: returns the function to use as `row` for a list, given all its objects; for kinds whose cells depend on
            other objects of the list.
        order: the sort key of rows; None keeps the order of the list.
        repeats_columns: whether each event of a watch has the columns, and not only the first one.
        described: the built-in resource (`deployments.apps`) whose column descriptions apply if the columns have none.
        reads: the fields that `row` and `conditions` read, as a struct whose optional fields default to UNSET. Only
            these are then decoded for a row. None decodes whole objects.
        lasting: whether the cells, except for `TimedCell`s, and the conditions depend on the object alone. They are
            then computed once for each revision of a stored object.
    """

    columns: Sequence[Column]
    row: Callable[[Object], list[Any]]
    conditions: Callable[[Object], list[Object]] | None = None
    null_rows: bool = False
    of_list: Callable[[Sequence[Object]], Callable[[Object], list[Any]]] | None = None
    order: Callable[[Object], tuple[Any, ...]] | None = None
    repeats_columns: bool = False
    described: str = ""
    reads: type[msgspec.Struct] | None = None
    lasting: bool = True


_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
"""An unset time, as Go formats it. Bookmarks of watches have no creation time."""


def _name_and_creation(obj: Object) -> list[Any]:
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or _ZERO_TIME]


DEFAULT_TABLE: Final = TableConvertor(
    (
        Column("Name", format="name", description=NAME_DESCRIPTION),
        Column("Created At", type="date", description=CREATED_DESCRIPTION),
    ),
    _name_and_creation,
)
"""The columns of kinds that define none."""
