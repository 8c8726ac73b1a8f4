"""Descriptions of built-in types and their fields, for `kubectl explain`.

Not committed: the build of the package writes them from a build requirement (hatch_build.py). Without the file there are none.
"""

from __future__ import annotations

import lzma
from importlib.resources import files
from typing import TypeAlias

import orjson

Descriptions: TypeAlias = dict[str, tuple[str, dict[str, str]]]
"""Definition → its description and those of its fields."""
FILE = "descriptions.json.xz"


def load() -> Descriptions:
    """Read anew each time: documents are built seldom, and the texts are 1 MB."""
    file = files(__package__).joinpath("data", FILE)
    if not file.is_file():
        return {}
    found: Descriptions = orjson.loads(lzma.decompress(file.read_bytes()))
    return found
