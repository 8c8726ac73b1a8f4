"""An object as Go would have written it in JSON, for the refusals that quote a patched object.

Go writes structs in the order of their fields and maps sorted; a patch sorts the objects on its way. Only metadata's order is
known here; other untouched structs keep the order in which they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from tetrapod.machinery.metadata import FIELD_ORDER

_MANAGED: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")

Touched = Mapping[str, Any]
"""Which objects a patch went through: nested by their names."""


def go_json(obj: Any, touched: Touched, *, sort_all: bool = False) -> str:
    if sort_all:
        return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS).decode()
    return orjson.dumps(_ordered(obj, touched, ())).decode()


def _ordered(value: Any, touched: Touched | None, path: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_ordered(item, None, (*path, "")) for item in value]
    if not isinstance(value, dict):
        return value
    if touched is not None or tuple(path[-1:]) in (("labels",), ("annotations",), ("data",), ("matchLabels",), ("fieldsV1",)):
        names = sorted(value)
    elif tuple(path) == ("metadata",):
        names = _by(value, FIELD_ORDER)
    elif tuple(path) == ("metadata", "managedFields", ""):
        names = _by(value, _MANAGED)
    else:
        names = list(value)
    out = {}
    for name in names:
        below = touched.get(name) if touched is not None else None
        out[name] = _ordered(value[name], below if isinstance(below, dict) else None, (*path, name))
    return out


def _by(value: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    return [name for name in order if name in value] + [name for name in value if name not in order]


def touched_by_merge(patch: Any) -> Touched:
    return patch if isinstance(patch, dict) else {}


def touched_by_json_patch(operations: Sequence[Mapping[str, Any]]) -> Touched:
    touched: dict[str, Any] = {}
    for operation in operations:
        at = touched
        for token in str(operation.get("path", "")).split("/")[1:-1]:
            at = at.setdefault(token, {})
    return touched
