"""Descriptions of built-in types and their fields, for `kubectl explain`.

Not committed: the build of the package writes them from a build requirement (hatch_build.py), a member of a zip for each Go
package. Without the file there are none.
"""

from __future__ import annotations

import zipfile
from importlib.resources import as_file, files
from typing import TypeAlias

import orjson

Descriptions: TypeAlias = dict[str, tuple[str, dict[str, str]]]
"""Short name of a definition → its description and those of its fields."""
FILE = "descriptions.zip"


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


class Texts:
    """The descriptions that one document needs; a package is read once."""

    def __init__(self) -> None:
        self._packages: dict[str, Descriptions] = {}

    def of(self, definition: str) -> tuple[str, dict[str, str]]:
        package, _, name = definition.rpartition(".")
        if package not in self._packages:
            self._packages[package] = load(package)
        text, fields = self._packages[package].get(name, ("", {}))
        return text, fields
