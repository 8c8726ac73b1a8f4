"""The resources of the library, each with a JSON schema.

Books are namespaced and have a status subresource. Shelves are cluster-scoped.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

from tetrapod.generic.aggregated import Kind, PrinterColumn

API_VERSION: Final = "library.example.com/v1"


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath(f"schemas/{name}.json").read_text())
    return found


BOOK: Final = Kind(
    API_VERSION,
    "Book",
    _schema("book"),
    short_names=("bk",),
    categories=("all",),
    columns=(
        PrinterColumn("Title", lambda book: book["spec"]["title"]),
        PrinterColumn("Author", lambda book: book["spec"].get("author", "")),
        PrinterColumn("Copies", lambda book: book["spec"]["copies"], "integer"),
        PrinterColumn("Lent", lambda book: book.get("status", {}).get("lent", 0), "integer", priority=1),
    ),
)
SHELF: Final = Kind(
    API_VERSION,
    "Shelf",
    _schema("shelf"),
    plural="shelves",
    namespaced=False,
    columns=(PrinterColumn("Room", lambda shelf: shelf["spec"]["room"]),),
)
KINDS: Final = (BOOK, SHELF)
