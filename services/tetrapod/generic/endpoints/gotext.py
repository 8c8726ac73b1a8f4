"""An object as Go would have written it in JSON, for the refusals that quote a patched object.

Go writes structs in the order of their fields and maps sorted; a patch is applied to that text, sorts the objects that it goes through,
and leaves alone what it was sent to put in. Upstream: gopkg.in/evanphx/json-patch.v4 (lazyNode), over encoding/json of the built-in types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.shapes.node import SchemaNode

_TYPE_META: Final = ("kind", "apiVersion")
_FIELDS_V1: Final = ".FieldsV1"


class Touched:
    """What a patch went through: an object or list, and what is in it by names and indexes. `deep`: and all below."""

    __slots__ = ("below", "deep")

    def __init__(self, below: dict[str, Touched] | None = None, *, deep: bool = False) -> None:
        self.below = below or {}
        self.deep = deep

    def at(self, name: str) -> Touched | None:
        return self if self.deep else self.below.get(name)

    def copy(self) -> Touched:
        return Touched({name: touched.copy() for name, touched in self.below.items()}, deep=self.deep)


def sorted_members(obj: Object) -> Object:
    """Of a custom resource, which is a map all the way."""
    in_order: Object = orjson.loads(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS))
    return in_order


def in_go_order(value: Any, node: SchemaNode | None) -> Any:
    """The value with the members of its objects as Go writes them."""
    if isinstance(value, list):
        return [in_go_order(item, node.items if node is not None else None) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: in_go_order(value[name], _below(node, name)) for name in _names(value, node)}


def sort_touched(value: Any, touched: Touched | None) -> Any:
    """The value with the members sorted of all objects that a patch went through."""
    if touched is None or not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list):
        return [sort_touched(item, touched.at(str(i))) for i, item in enumerate(value)]
    return {name: sort_touched(value[name], touched.at(name)) for name in sorted(value)}


def _below(node: SchemaNode | None, name: str) -> SchemaNode | None:
    if node is None:
        return None
    return node.properties.get(name) or node.additional_properties


def _names(value: Object, node: SchemaNode | None) -> list[str]:
    if node is None:
        return list(value)
    if not node.properties:
        return sorted(value) if node.additional_properties is not None or node.definition.endswith(_FIELDS_V1) else list(value)
    order = _fields(node.definition)
    return [name for name in order if name in value] + [name for name in value if name not in order]


@cache
def _fields(definition: str) -> tuple[str, ...]:
    """The names of a struct's fields in their order, those of embedded structs at their place."""
    from tetrapod.machinery.protobuf.messages import UnknownMessageError, fields

    try:
        declared = fields(definition)
    except UnknownMessageError:
        return ()
    names = [name for field in declared for name in (_fields(field.type) if field.label == "inline" else (field.name,))]
    return (*(name for name in _TYPE_META if name not in names), *names)


def touched_by_merge(patch: Any) -> Touched | None:
    """The objects on the way, and all that is put in."""
    if isinstance(patch, dict):
        return Touched({name: below for name, value in patch.items() if (below := touched_by_merge(value)) is not None})
    return Touched(deep=True) if isinstance(patch, list) else None


def touched_by_json_patch(operations: Sequence[Mapping[str, Any]]) -> Touched:
    """The objects and lists on the paths; a test looks at everything below its own. What is put in has not been gone through, and what
    is moved or copied comes as it is."""
    root = Touched()
    for operation in operations:
        path, source = _tokens(operation.get("path")), _tokens(operation.get("from"))
        come = _go(root, source[:-1]).below.get(source[-1]) if source else None
        parent = _go(root, path[:-1])
        if operation.get("op") == "test":
            _go(root, path).deep = True
        elif not path:
            root.below.clear()
        elif come is None:
            parent.below.pop(path[-1], None)
        else:
            parent.below[path[-1]] = come.copy()
    return root


def _tokens(path: Any) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in str(path or "").split("/")[1:]]


def _go(root: Touched, tokens: Sequence[str]) -> Touched:
    at = root
    for token in tokens:
        at = at.below.setdefault(token, Touched())
    return at
