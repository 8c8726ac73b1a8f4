"""Descriptions of built-in types and their fields, for `kubectl explain`.

Most are not committed: the build of the package writes them from a build requirement (hatch_build.py), a member of a zip for each Go
package. Without the file there are none of those. What that requirement does not have, above all what the values of enums mean, is
committed (tools/generate_enum_texts.py), as are the texts of Tables' columns (tools/generate_column_texts.py).
"""

from __future__ import annotations

import zipfile
from functools import cache, cached_property
from importlib.resources import as_file, files
from typing import TypeAlias

import orjson

Descriptions: TypeAlias = dict[str, tuple[str, dict[str, str]]]
"""Short name of a definition → its description and those of its fields."""
FILE = "descriptions.zip"
ENUM_TEXTS = "enum_texts.json"
COLUMN_TEXTS = "column_texts.json"


def load(package: str) -> Descriptions:
    """Of the definitions of a Go package (`io.k8s.api.core.v1`). Read anew each time: documents are built seldom."""
    file = files(__package__).joinpath("data", FILE)
    if not file.is_file():
        return {}
    with as_file(file) as path, zipfile.ZipFile(path) as archive:
        try:
            found: Descriptions = orjson.loads(archive.read(f"{package}.json"))
        except KeyError:
            return {}
    return found


def load_ends() -> dict[str, dict[str, str]]:
    """Definition → field → how its description goes on; "" is the definition itself."""
    found: dict[str, dict[str, str]] = {}
    for text, *places in orjson.loads(files(__package__).joinpath("data", ENUM_TEXTS).read_bytes()):
        for place in places:
            definition, _, field = place.rpartition(".")
            if field[0].isupper():  # the name of a type
                definition, field = place, ""
            found.setdefault(definition, {})[field] = text
    return found


def column_texts(resource: str) -> dict[str, str]:
    """What the columns of a built-in resource (`deployments.apps`) mean, by their names."""
    texts, columns = _columns()
    return {name: texts[number] for name, number in columns.get(resource, {}).items()}


@cache
def _columns() -> tuple[list[str], dict[str, dict[str, int]]]:
    found = orjson.loads(files(__package__).joinpath("data", COLUMN_TEXTS).read_bytes())
    return found["texts"], found["columns"]


class Texts:
    """The descriptions that one document needs; a package is read once."""

    def __init__(self) -> None:
        self._packages: dict[str, Descriptions] = {}

    @cached_property
    def _ends(self) -> dict[str, dict[str, str]]:
        return load_ends()

    def of(self, definition: str) -> tuple[str, dict[str, str]]:
        package, _, name = definition.rpartition(".")
        if package not in self._packages:
            self._packages[package] = load(package)
        text, fields = self._packages[package].get(name, ("", {}))
        ends = self._ends.get(definition)
        if ends is None:
            return text, fields
        return text or ends.get("", ""), fields | {field: (fields.get(field, "") + end).lstrip() for field, end in ends.items() if field}
