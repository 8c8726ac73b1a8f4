"""`Unstored`: an Entry that no store holds: what a dry run would have stored, or an object as it was last seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tetrapod.generic.storage.encoding import divided
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import encode


class Unstored:
    """Implements storage's `Entry`. Takes the object over: its maker does not change it any more."""

    __slots__ = ("_object", "key", "raw", "representations", "revision")

    def __init__(self, key: str, obj: Object, revision: int = 0) -> None:
        self.key = key
        self.raw = encode(obj)
        self.revision = revision
        self.representations: dict[Any, Any] = {}
        self._object = obj

    @property
    def head(self) -> bytes:
        """What the object is: kind and apiVersion."""
        return divided(self.raw)[0]

    @property
    def item(self) -> bytes:
        """The rest of the JSON."""
        return divided(self.raw)[1]

    def object(self) -> Object:
        """A copy for its caller."""
        copy: Object = orjson.loads(self.raw)
        return copy

    def peek(self) -> Object:
        """The object itself, which nobody may change."""
        return self._object

    @property
    def labels(self) -> Mapping[str, str]:
        return self._object["metadata"].get("labels") or {}

    @property
    def namespace(self) -> str:
        namespace: str = self._object["metadata"].get("namespace") or ""
        return namespace

    @property
    def name(self) -> str:
        name: str = self._object["metadata"].get("name") or ""
        return name
