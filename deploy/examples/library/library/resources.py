"""What the library serves: books (namespaced, with a status of their own) and shelves (of the whole cluster), each from a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from tetrapod.generic.openapi.custom import CustomKind, custom_document
from tetrapod.generic.openapi.source import gv_name, hash_of
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import Column, ResourceDefinition, Subresource, TableConvertor
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema.node import SchemaNode
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.validation import validate
from tetrapod.machinery.timestamps import age

GROUP_VERSION: Final = GroupVersion("library.example.com", "v1")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath(f"schemas/{name}.json").read_text())
    return found


SCHEMAS: Final = {name: _schema(name) for name in ("book", "shelf")}


class SchemaStrategy(Strategy):
    """Objects are what their schema allows; their spec's generation is counted."""

    generation = ("spec",)

    def __init__(self, node: SchemaNode, namespaced: bool) -> None:
        self.node, self.namespaced = node, namespaced

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate(self.node, obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate(self.node, new)


class BookStrategy(SchemaStrategy):
    """A book's status is the librarian's: it is set through the status subresource only."""

    has_status = True

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


def _age(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp"))


_NAME: Final = Column("Name", format="name")
_BOOK_COLUMNS: Final = TableConvertor(
    (_NAME, Column("Title"), Column("Author"), Column("Copies", "integer"), Column("Lent", "integer", priority=1), Column("Age")),
    lambda book: [
        book["metadata"]["name"],
        book["spec"]["title"],
        book["spec"].get("author", ""),
        book["spec"]["copies"],
        book.get("status", {}).get("lent", 0),
        _age(book),
    ],
)
_SHELF_COLUMNS: Final = TableConvertor(
    (_NAME, Column("Room"), Column("Age")), lambda shelf: [shelf["metadata"]["name"], shelf["spec"]["room"], _age(shelf)]
)


def _books() -> ResourceDefinition:
    node = build(SCHEMAS["book"])
    strategy = BookStrategy(node, True)
    status = StatusStrategy(strategy, validate=lambda new, old: validate(node, new))
    return ResourceDefinition(
        group=GROUP_VERSION.group,
        resource="books",
        kind="Book",
        singular="book",
        namespaced=True,
        versions=(GROUP_VERSION.version,),
        storage_version=GROUP_VERSION.version,
        storage_prefix=f"{GROUP_VERSION.group}/books",
        verbs=_VERBS,
        schema=lambda version: node,
        strategy=strategy,
        list_kind="BookList",
        short_names=("bk",),
        categories=("all",),
        subresources=(Subresource("status", ("get", "patch", "update"), strategy=status),),
        table=_BOOK_COLUMNS,
        custom=True,
    )


def _shelves() -> ResourceDefinition:
    node = build(SCHEMAS["shelf"])
    return ResourceDefinition(
        group=GROUP_VERSION.group,
        resource="shelves",
        kind="Shelf",
        singular="shelf",
        namespaced=False,
        versions=(GROUP_VERSION.version,),
        storage_version=GROUP_VERSION.version,
        storage_prefix=f"{GROUP_VERSION.group}/shelves",
        verbs=_VERBS,
        schema=lambda version: node,
        strategy=SchemaStrategy(node, False),
        list_kind="ShelfList",
        table=_SHELF_COLUMNS,
        custom=True,
    )


def definitions() -> list[ResourceDefinition]:
    return [_books(), _shelves()]


class LibraryOpenAPI:
    """The OpenAPI document of the group, for `kubectl explain` (a `DocumentSource`)."""

    async def index(self) -> Mapping[str, str]:
        return {gv_name(GROUP_VERSION): hash_of(gv_name(GROUP_VERSION), SCHEMAS)}

    async def document(self, name: str) -> Object | None:
        if name != gv_name(GROUP_VERSION):
            return None
        kinds = [
            CustomKind("Book", "BookList", "books", True, SCHEMAS["book"], status=True),
            CustomKind("Shelf", "ShelfList", "shelves", False, SCHEMAS["shelf"]),
        ]
        return custom_document(kinds, GROUP_VERSION)
