"""Descriptions of built-in types and their fields, for OpenAPI documents and `kubectl explain`.

Most are not committed: hatch_build.py writes them from a build requirement to a zip file with a member for each Go
package. Without the file, these descriptions are empty. Texts that the requirement lacks are committed: above all the
descriptions of enum values (tools/generate_enum_texts.py) and of the columns of Tables
(tools/generate_column_texts.py).
"""

from __future__ import annotations

import zipfile
from functools import cache, cached_property
from importlib.resources import as_file, files
from typing import TypeAlias

import orjson

Descriptions: TypeAlias = dict[str, tuple[str, dict[str, str]]]
"""The description of each definition, by its short name, and those of its fields."""
FILE = "descriptions.zip"
ENUM_TEXTS = "enum_texts.json"
COLUMN_TEXTS = "column_texts.json"


def load(package: str) -> Descriptions:
    """Return the descriptions of the definitions in a Go package (`io.k8s.api.core.v1`).

    The result is {} if the file is missing or does not contain the package. The file is read at each call, because
    OpenAPI documents are rarely built.
    """
    file = files(__package__).joinpath("data", FILE)
    if not file.is_file():
        return {}
    with as_file(file) as path, zipfile.ZipFile(path) as archive:
        try:
            descriptions: Descriptions = orjson.loads(archive.read(f"{package}.json"))
        except KeyError:
            return {}
    return descriptions


def load_ends() -> dict[str, dict[str, str]]:
    """Return the texts to append to descriptions (such as those of enum values), by definition and field.

    The text for the definition itself is under "".
    """
    ends: dict[str, dict[str, str]] = {}
    for text, *paths in orjson.loads(files(__package__).joinpath("data", ENUM_TEXTS).read_bytes()):
        for path in paths:
            definition, _, field = path.rpartition(".")
            if field[0].isupper():  # the name of a type
                definition, field = path, ""
            ends.setdefault(definition, {})[field] = text
    return ends


def column_texts(resource: str) -> dict[str, str]:
    """Return the descriptions of the columns of a built-in resource (`deployments.apps`), by column name.

    The result is {} for a resource whose columns have no descriptions.
    """
    texts, columns = _columns()
    return {name: texts[number] for name, number in columns.get(resource, {}).items()}


@cache
def _columns() -> tuple[list[str], dict[str, dict[str, int]]]:
    data = orjson.loads(files(__package__).joinpath("data", COLUMN_TEXTS).read_bytes())
    return data["texts"], data["columns"]


class Texts:
    """A reader of descriptions for one document, which reads each Go package only once."""

    def __init__(self) -> None:
        self._packages: dict[str, Descriptions] = {}

    @cached_property
    def _ends(self) -> dict[str, dict[str, str]]:
        return load_ends()

    def of(self, definition: str) -> tuple[str, dict[str, str]]:
        """Return the description of a definition and those of its fields, by field name.

        For a definition that has no description, the first is "".
        """
        package, _, name = definition.rpartition(".")
        if package not in self._packages:
            self._packages[package] = load(package)
        text, fields = self._packages[package].get(name, ("", {}))
        ends = self._ends.get(definition)
        if ends is None:
            return text, fields
        return text or ends.get("", ""), fields | {
            field: (fields.get(field, "") + end).lstrip() for field, end in ends.items() if field
        }
