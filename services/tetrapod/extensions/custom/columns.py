"""The `TableConvertor` for additionalPrinterColumns.

Upstream: apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.jsonpath import JsonPath, JsonPathError, compile_path, print_value
from tetrapod.machinery.table import CREATED_DESCRIPTION, NAME_DESCRIPTION, Column, TableConvertor
from tetrapod.machinery.timed_cells import TimedCell, since

log = logging.getLogger(__name__)
_AGE: Final[Object] = {
    "name": "Age",
    "type": "date",
    "description": CREATED_DESCRIPTION,
    "jsonPath": ".metadata.creationTimestamp",
}
"""The column of a version without additionalPrinterColumns."""
Cell = Callable[[Object], Any]


def table_convertor(columns: Sequence[Object]) -> TableConvertor:
    """Return the table convertor of a version: the column Name, and then those of `columns`.

    As in upstream, a column with an invalid JSONPath is left out with all that follow it.

    Args:
        columns: additionalPrinterColumns of the version. If the list is empty, the table has the column Age instead.
    """
    shown = [Column("Name", format="name", description=NAME_DESCRIPTION)]
    cells: list[Cell] = []
    for column in columns or (_AGE,):
        try:
            path = compile_path(column["jsonPath"])
        except JsonPathError as error:
            log.warning("printer column %s: %s", column["jsonPath"], error)
            break
        cells.append(_cell(path, column["type"]))
        described = (
            column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
        )
        shown.append(
            Column(column["name"], column["type"], column.get("format") or "", column.get("priority") or 0, described)
        )

    def row(obj: Object) -> list[Any]:
        return [obj["metadata"].get("name", ""), *(cell(obj) for cell in cells)]

    return TableConvertor(shown, row)


def _cell(path: JsonPath, kind: str) -> Cell:
    convert: Callable[[Any], Any] = _CONVERT.get(kind, _nothing)

    def cell(obj: Object) -> Any:
        try:
            results = path.find(obj)
        except JsonPathError:
            return None
        # A column has one value: for `.spec.list[*]` the first.
        return convert(results[0][0]) if results and results[0] else None

    return cell


def _nothing(value: Any) -> None:
    """Return None for every value, so that a column of an unknown type has empty cells."""


_INT64: Final = 1 << 63


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    whole = int(value)
    return whole if -_INT64 <= whole < _INT64 else -_INT64  # Go converts floats beyond int64 to its minimum on amd64


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> TimedCell | str | None:
    return since(value) if isinstance(value, str) else None


_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {
    "string": print_value,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
