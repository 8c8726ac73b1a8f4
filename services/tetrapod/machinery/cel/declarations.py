"""`DeclType`: a declared type with its fields and the greatest sizes that its values can have.

Upstream: k8s.io/apiserver/pkg/cel/types.go. `schema_types` makes them of `SchemaNode`s; callers with types of their own (an
admission request) make them with `object_decl`, `list_decl`, `map_decl` and the constants here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.types import CelType


class DeclType:
    """`max_elements` bounds strings, bytes, lists and maps (0: not bounded by the schema); sizes are in bytes of JSON."""

    __slots__ = ("cel", "elem", "fields", "key", "max_elements", "min_size", "name")

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
    ) -> None:
        self.name = name
        self.cel = cel
        self.min_size = min_size
        self.fields = fields
        self.key = key
        self.elem = elem
        self.max_elements = max_elements

    @property
    def is_map(self) -> bool:
        return self.key is not None

    def named(self, name: str) -> DeclType:
        """The type with its nameless objects called after their place (upstream: MaybeAssignTypeName)."""
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
        return list_decl(elem, self.max_elements) if self.key is None else map_decl(self.key, elem, self.max_elements)

    def objects(self) -> Iterator[DeclType]:
        """All object types in it, itself among them."""
        if self.fields is not None:
            yield self
            for decl in self.fields.values():
                yield from decl.objects()
        elif self.elem is not None:
            yield from self.elem.objects()


def list_decl(elem: DeclType, max_items: int = -1) -> DeclType:
    return DeclType("list", types.list_of(elem.cel), 2, elem=elem, max_elements=max_items)


def map_decl(key: DeclType, elem: DeclType, max_properties: int = -1) -> DeclType:
    return DeclType("map", types.map_of(key.cel, elem.cel), 2, key=key, elem=elem, max_elements=max_properties)


def object_decl(name: str, fields: Mapping[str, DeclType], min_size: int = 2) -> DeclType:
    """Fields by their escaped CEL names. The name `object` means none yet."""
    return DeclType(name, types.object_type(name), min_size, fields=fields)


BOOL: Final = DeclType("bool", types.BOOL, 4)
DOUBLE: Final = DeclType("double", types.DOUBLE, 1)
DYN: Final = DeclType("dyn", types.DYN, 1)
INT: Final = DeclType("int", types.INT, 1)
QUANTITY: Final = DeclType("quantity", types.object_type("kubernetes.Quantity"), 8)
STRING: Final = DeclType("string", types.STRING, 2)
TIMESTAMP: Final = DeclType("timestamp", types.TIMESTAMP, 12)
