"""Conversion of objects and encoded bytes between the version of a request and the storage version.

Usually the versions are the same or differ only in `apiVersion`; then bytes are sliced instead of parsed. Conversion
webhooks are asynchronous and convert many objects per call (`ResourceDefinition.convert_many`). For them, `ready` must
be called before `bytes`, `object` and `peek`.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import encode


class Conversion:
    """The conversion of the objects of one resource between `version` and the storage version.

    If the resource has a conversion webhook, `ready` must be awaited before `bytes`, `object` and `peek`.

    Args:
        definition: the resource.
        version: the version in requests and responses.

    Attributes:
        definition: the resource.
        version: the version in requests and responses.
        api_version: the apiVersion of that version.
        stored: the apiVersion of stored objects.
        identity: whether `api_version` and `stored` are the same.
    """

    __slots__ = (
        "_convert",
        "_convert_many",
        "_prefix",
        "_stored_prefix",
        "api_version",
        "definition",
        "identity",
        "stored",
        "version",
    )

    def __init__(self, definition: ResourceDefinition, version: str) -> None:
        self.definition = definition
        self.version = version
        self.api_version = definition.gvk(version).api_version
        self.stored = definition.stored_api_version
        self.identity = self.api_version == self.stored
        self._convert = definition.convert
        self._convert_many = None if self.identity else definition.convert_many
        self._prefix = type_prefix(definition.kind, self.api_version)
        self._stored_prefix = type_prefix(definition.kind, self.stored)

    @property
    def prefix(self) -> bytes:
        """The first bytes of an object that is encoded in this version: `{"kind":…,"apiVersion":…,`."""
        return self._prefix

    async def ready(self, entries: Sequence[Entry]) -> None:
        """Convert these entries by the conversion webhook, in one call, and cache the results in them.

        Entries that have been converted before are skipped. If the resource has no conversion webhook, do nothing.
        Afterwards `bytes`, `object` and `peek` work without waiting.

        Raises:
            StatusError: 500, the webhook failed; no result is cached.
        """
        if self._convert_many is None:
            return
        missing = [entry for entry in entries if self.api_version not in entry.representations]
        if missing:
            converted = await self._convert_many([entry.object() for entry in missing], self.version)
            for entry, obj in zip(missing, converted, strict=True):
                entry.representations[self.api_version] = encode(obj)

    @property
    def calls_webhook(self) -> bool:
        """Whether a conversion webhook converts the objects, whose results for one object can differ."""
        return self._convert_many is not None

    @property
    def metadata_version(self) -> str:
        """The part of a cache key that distinguishes versions, for data that is derived from `metadata_bytes`.

        It is "" for built-in kinds, whose metadata is the same in all versions. Entries cache such data in
        `representations`.
        """
        return self.api_version if self.definition.custom else ""

    def metadata_bytes(self, entry: Entry) -> bytes:
        """Return an encoding of a stored object of which the caller may only use the metadata.

        For built-in kinds it is in the storage version, because metadata is the same in all versions. Annotations in
        `ResourceDefinition.hidden_annotations`, which upstream does not have, are left out.
        """
        if self.definition.custom:
            return self.bytes(entry)
        hidden = self.definition.hidden_annotations
        if not hidden or hidden.isdisjoint(entry.peek()["metadata"].get("annotations") or ()):
            return entry.raw
        return encode(without_annotations(entry.object(), hidden))

    def bytes(self, entry: Entry) -> bytes:
        """Return a stored object encoded in this version. The result of a conversion is cached in the entry."""
        raw = entry.raw
        if self.identity and raw.startswith(self._prefix):
            return raw
        if self._convert is None and self._convert_many is None and raw.startswith(self._stored_prefix):
            return self._prefix + raw[len(self._stored_prefix) :]
        encoded: bytes | None = entry.representations.get(self.api_version)
        if encoded is None:
            encoded = entry.representations[self.api_version] = encode(self._convert_object(entry.object()))
        return encoded

    def object(self, entry: Entry) -> Object:
        """Return a copy of a stored object in this version, which the caller may modify."""
        if self._convert_many is None:
            return self._convert_object(entry.object())
        copy: Object = orjson.loads(self.bytes(entry))
        return copy

    def peek(self, entry: Entry) -> Object:
        """Return a stored object in this version. The object may be shared and must not be modified."""
        obj = entry.peek()
        if self.holds(obj):
            return obj
        return self.object(entry) if self._convert_many is not None else self._convert_object({**obj})

    def holds(self, obj: Object) -> bool:
        """Return whether a stored object is in this version.

        It is not if a former release stored it in another version than the storage version.
        """
        return self.identity and obj.get("apiVersion") == self.api_version

    def _convert_object(self, obj: Object) -> Object:
        if obj.get("apiVersion") == self.api_version:
            return obj
        if self._convert is not None:
            return self._convert(obj, self.version)
        obj["apiVersion"] = self.api_version
        return obj

    async def from_stored(self, obj: Object) -> Object:
        """Convert an object from the storage version to this version. The argument may be modified.

        Raises:
            StatusError: 500, the resource has a conversion webhook, and it failed.
        """
        if self._convert_many is not None:
            return (await self._convert_many([obj], self.version))[0]
        return self._convert_object(obj)

    async def to_stored(self, obj: Object) -> Object:
        """Convert an object from this version to the storage version. The argument may be modified.

        Raises:
            StatusError: 500, the resource has a conversion webhook, and it failed.
        """
        if self.identity:
            return obj
        if self._convert_many is not None:
            return (await self._convert_many([obj], self.definition.storage_version))[0]
        if self._convert is not None:
            return self._convert(obj, self.definition.storage_version)
        obj["apiVersion"] = self.stored
        return obj


def without_annotations(obj: Object, hidden: frozenset[str]) -> Object:
    """Remove the annotations whose keys are in `hidden` from `obj`, in place, and return `obj`.

    The object must have annotations. If all are removed, the field is removed too.
    """
    visible = {key: value for key, value in obj["metadata"].pop("annotations").items() if key not in hidden}
    if visible:
        obj["metadata"]["annotations"] = visible
    return obj


def type_prefix(kind: str, api_version: str) -> bytes:
    """Return the first bytes of an encoded object of this type: `{"kind":…,"apiVersion":…,`."""
    return f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode()
