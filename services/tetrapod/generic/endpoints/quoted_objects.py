"""Objects in Go's JSON notation, for error messages that quote a patched object, and for RawExtension fields.

Go encodes structs in the order of their fields and maps sorted. Upstream applies a patch to that text. This sorts the
members of the objects that the patch traverses, and leaves the values that it inserts as they were sent. Clients see
that order in the fields of which the API server stores the text.
Upstream: gopkg.in/evanphx/json-patch.v4 (lazyNode), over encoding/json of the built-in types
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer.raw_json import EACH, RawPath

_TYPE_META: Final = ("kind", "apiVersion")
_FIELDS_V1: Final = ".FieldsV1"


class Touched:
    """The objects and lists that a patch traversed, as a tree of member names and list indexes.

    Upstream's patch library parses these parts of the JSON text and writes their members in sorted order. It copies the
    text of all other parts unchanged.

    Attributes:
        below: the traversed members of this object or list, by name or by index as text.
        deep: whether everything below was traversed too.
    """

    __slots__ = ("below", "deep")

    def __init__(self, below: dict[str, Touched] | None = None, *, deep: bool = False) -> None:
        self.below = below or {}
        self.deep = deep

    def at(self, name: str) -> Touched | None:
        """Return the node of a member or index (as text), or None if the patch did not traverse it."""
        return self if self.deep else self.below.get(name)

    def copy(self) -> Touched:
        """Return a deep copy."""
        return Touched({name: touched.copy() for name, touched in self.below.items()}, deep=self.deep)


def sorted_members(obj: Object) -> Object:
    """Return a copy of the object with sorted members, as Go encodes a custom resource, which is a map there."""
    in_order: Object = orjson.loads(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS))
    return in_order


def in_go_order(value: Any, node: SchemaNode | None) -> Any:
    """Return a copy of the value with members in the order in which Go encodes them.

    Args:
        node: the schema of the value; None leaves the order unchanged.
    """
    if isinstance(value, list):
        return [in_go_order(item, node.items if node is not None else None) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: in_go_order(value[name], _below(node, name)) for name in _names(value, node)}


def sort_touched(value: Any, touched: Touched | None) -> Any:
    """Return a copy of the value with sorted members in all objects that a patch traversed.

    Values that the patch did not traverse are not copied.

    Args:
        touched: the traversed parts of `value`; None if the patch did not traverse it.
    """
    if touched is None or not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list):
        return [sort_touched(item, touched.at(str(i))) for i, item in enumerate(value)]
    return {name: sort_touched(value[name], touched.at(name)) for name in sorted(value)}


def sort_touched_field(obj: Any, path: RawPath, touched: Touched | None) -> None:
    """Sort the members of the field at a path in all objects that a patch traversed, in place.

    Args:
        obj: the patched object.
        path: the path of the field, which may be unset.
        touched: the traversed parts of `obj`.
    """
    step, rest = path[0], path[1:]
    if touched is None:
        return
    if step == EACH:
        for number, item in enumerate(obj if isinstance(obj, list) else ()):
            sort_touched_field(item, rest, touched.at(str(number)))
    elif isinstance(obj, dict) and step in obj:
        if rest:
            sort_touched_field(obj[step], rest, touched.at(step))
        else:
            obj[step] = sort_touched(obj[step], touched.at(step))


def _below(node: SchemaNode | None, name: str) -> SchemaNode | None:
    if node is None:
        return None
    return node.properties.get(name) or node.additional_properties


def _names(value: Object, node: SchemaNode | None) -> list[str]:
    if node is None:
        return list(value)
    if not node.properties:
        return (
            sorted(value)
            if node.additional_properties is not None or node.definition.endswith(_FIELDS_V1)
            else list(value)
        )
    order = _fields(node.definition)
    return [name for name in order if name in value] + [name for name in value if name not in order]


@cache
def _fields(definition: str) -> tuple[str, ...]:
    """Return the JSON names of a struct's fields in order, with those of embedded structs in their place.

    Args:
        definition: the name of the type in OpenAPI. The result is empty for a type that is not a struct.
    """
    from tetrapod.machinery.protobuf.messages import UnknownMessageError, fields

    try:
        declared = fields(definition)
    except UnknownMessageError:
        return ()
    names = [name for field in declared for name in (_fields(field.type) if field.label == "inline" else (field.name,))]
    return (*(name for name in _TYPE_META if name not in names), *names)


def touched_by_merge(patch: Any, current: Any) -> Touched | None:
    """Return the members of the patched object that a merge patch names, if their new values are objects or lists.

    All members of a list that the patch sets are included, unless it replaces an object: upstream copies the text of
    such a list. Error messages quote the included objects with sorted members.

    Args:
        patch: the patch of a value.
        current: the value before the patch.

    Returns:
        A tree of member names; None if `patch` is neither an object nor a list.
    """
    if isinstance(patch, dict):
        existing = current if isinstance(current, dict) else {}
        members = {name: touched_by_merge(value, existing.get(name)) for name, value in patch.items()}
        return Touched({name: below for name, below in members.items() if below is not None})
    return Touched(deep=True) if isinstance(patch, list) and not isinstance(current, dict) else None


def touched_by_json_patch(operations: Sequence[Mapping[str, Any]]) -> Touched:
    """Return the objects and lists that a JSON patch traverses.

    - Each operation traverses the objects and lists on its path and on its `from`.
    - A `test` also traverses everything below its path.
    - The value of an `add` or `replace` counts as not traversed until a later operation traverses it.
    - After a `move` or `copy`, the same parts of the value are traversed at the destination as at the source.
    """
    root = Touched()
    for operation in operations:
        path, source = _tokens(operation.get("path")), _tokens(operation.get("from"))
        moved = _go(root, source[:-1]).below.get(source[-1]) if source else None
        parent = _go(root, path[:-1])
        if operation.get("op") == "test":
            _go(root, path).deep = True
        elif not path:
            root.below.clear()
        elif moved is None:
            parent.below.pop(path[-1], None)
        else:
            parent.below[path[-1]] = moved.copy()
    return root


def _tokens(path: Any) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in str(path or "").split("/")[1:]]


def _go(root: Touched, tokens: Sequence[str]) -> Touched:
    at = root
    for token in tokens:
        at = at.below.setdefault(token, Touched())
    return at
