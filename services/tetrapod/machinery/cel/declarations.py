"""Declared types: types with their fields and the largest sizes that their values can have.

`schema_types` creates them from schemas (`SchemaNode`). Callers with other types, such as an admission request, create
them with `object_decl`, `list_decl`, `map_decl` and the constants of this module.

Upstream: k8s.io/apiserver/pkg/cel/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.types import CelType


class DeclType:
    """A declared type.

    Args:
        name: the name of the type: `object` for an object type that has none yet (see `named`).
        cel: the type as the checker sees it.
        min_size: the smallest size of a value, in bytes of JSON.
        fields: the fields of an object, by their escaped CEL names; None for other types.
        key: the type of a map's keys; None for other types.
        elem: the type of the elements of a list or the values of a map; None for other types.
        max_elements: the largest length of a string, bytes, list or map; -1 means unbounded.
        by_name: whether the size of a map's entry is known if its name selects it, as in `labels.app`.
    """

    __slots__ = ("by_name", "cel", "elem", "fields", "key", "max_elements", "min_size", "name")

    def __init__(
        self,
        name: str,
        cel: CelType,
        min_size: int,
        *,
        fields: Mapping[str, DeclType] | None = None,
        key: DeclType | None = None,
        elem: DeclType | None = None,
        max_elements: int = 0,
        by_name: bool = False,
    ) -> None:
        self.name = name
        self.cel = cel
        self.min_size = min_size
        self.fields = fields
        self.key = key
        self.elem = elem
        self.max_elements = max_elements
        self.by_name = by_name

    @property
    def is_map(self) -> bool:
        """Return whether the type is a map, rather than a list, an object or a scalar."""
        return self.key is not None

    def named(self, name: str) -> DeclType:
        """Return this type with its unnamed object types named by their path, such as `NAME.spec`.

        `name` is the name of the root. The type itself is returned if nothing in it has to be named.

        Upstream: DeclType.MaybeAssignTypeName.
        """
        if self.fields is not None:
            name = name if self.name == "object" else self.name
            fields = {field: decl.named(f"{name}.{field}") for field, decl in self.fields.items()}
            if self.name == name and all(fields[field] is decl for field, decl in self.fields.items()):
                return self
            return DeclType(name, types.object_type(name), self.min_size, fields=fields)
        if self.elem is None:
            return self
        elem = self.elem.named(f"{name}.{'@idx' if self.key is None else '@elem'}")
        if elem is self.elem:
            return self
        if self.key is None:
            return list_decl(elem, self.max_elements)
        return map_decl(self.key, elem, self.max_elements, by_name=self.by_name)

    def objects(self) -> Iterator[DeclType]:
        """Yield all object types within this type at any depth, outer ones first, including the type itself."""
        if self.fields is not None:
            yield self
            for decl in self.fields.values():
                yield from decl.objects()
        elif self.elem is not None:
            yield from self.elem.objects()


def list_decl(elem: DeclType, max_items: int = -1) -> DeclType:
    """Return the type of lists of `elem` with at most `max_items` elements; -1 means unbounded."""
    return DeclType("list", types.list_of(elem.cel), 2, elem=elem, max_elements=max_items)


def map_decl(key: DeclType, elem: DeclType, max_properties: int = -1, *, by_name: bool = False) -> DeclType:
    """Return a type of maps.

    Args:
        key: the type of the keys.
        elem: the type of the values.
        max_properties: the most entries; -1 means unbounded.
        by_name: see `DeclType`.
    """
    kind = types.map_of(key.cel, elem.cel)
    return DeclType("map", kind, 2, key=key, elem=elem, max_elements=max_properties, by_name=by_name)


def object_decl(name: str, fields: Mapping[str, DeclType], min_size: int = 2) -> DeclType:
    """Return an object type.

    Args:
        name: the type's name; `object` means that it has none yet (see `DeclType.named`).
        fields: the fields by their escaped CEL names.
        min_size: the smallest size of a value, in bytes of JSON.
    """
    return DeclType(name, types.object_type(name), min_size, fields=fields)


BOOL: Final = DeclType("bool", types.BOOL, 4)
DOUBLE: Final = DeclType("double", types.DOUBLE, 1)
DYN: Final = DeclType("dyn", types.DYN, 1)
INT: Final = DeclType("int", types.INT, 1)
QUANTITY: Final = DeclType("quantity", types.object_type("kubernetes.Quantity"), 8)
STRING: Final = DeclType("string", types.STRING, 2)
TIMESTAMP: Final = DeclType("timestamp", types.TIMESTAMP, 12)
