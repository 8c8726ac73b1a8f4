"""Entries as protobuf messages.

Each is encoded from the stored object once per version and form (the object itself, or PartialObjectMetadata). The
message of the object in its storage version is kept as long as the entry. Informers in Go list everything in protobuf,
and the entries of such a list do not fit in the cache of representations. Other messages are cached there.

The cached bytes are an item (machinery/protobuf), which responses, lists and watch events contain.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import orjson

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.http.negotiation.accept import META_GROUP, PARTIAL, PARTIAL_LIST, PROTOBUF, Accepted
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery import protobuf
from tetrapod.machinery.freeing import use_large
from tetrapod.machinery.gvk import Object

_PARTIAL_MESSAGE = protobuf.message_of(f"{META_GROUP}/v1", PARTIAL)


class Messages:
    """The protobuf encoder of one resource in one version.

    Its methods take the `Accepted` of a request, whose form is "" for the object itself, or PartialObjectMetadata.

    Args:
        definition: the resource.
        conversion: converts stored objects to that version.
    """

    def __init__(self, definition: ResourceDefinition, conversion: Conversion) -> None:
        self._conversion = conversion
        self._kind = definition.kind
        self._list_kind = definition.list_kind or f"{definition.kind}List"
        self._api_version = conversion.api_version
        self._key = (PROTOBUF, conversion.api_version)
        self._partial_key = (PROTOBUF, PARTIAL, conversion.metadata_version)
        self._message = ""

    def entry(self, entry: Entry, accepted: Accepted) -> bytes:
        """Return a stored object, or its PartialObjectMetadata if that was negotiated, for a response or a watch event.

        Args:
            entry: the stored object.
            accepted: the negotiated form.
        """
        return protobuf.envelope(*self._type(accepted), self.item(entry, accepted))

    def item(self, entry: Entry, accepted: Accepted) -> bytes:
        """Return a stored object as a list item: the object, or its PartialObjectMetadata if that was negotiated."""
        if self._conversion.identity and not accepted.form and entry.size < LARGE:
            if entry.message is None:
                entry.message = self._encode(entry)
            return entry.message
        key = self._partial_key if accepted.form else self._key
        encoded: bytes | None = entry.representations.get(key)
        if encoded is None:
            encoded = entry.representations[key] = self._partial(entry) if accepted.form else self._encode(entry)
        return encoded

    def _partial(self, entry: Entry) -> bytes:
        obj = orjson.loads(self._conversion.metadata_bytes(entry))
        return protobuf.item(_PARTIAL_MESSAGE, {"metadata": obj["metadata"]})

    def _encode(self, entry: Entry) -> bytes:
        if not self._message:
            self._message = protobuf.message_of(self._api_version, self._kind)
        if entry.size < LARGE:
            return protobuf.item(self._message, self._conversion.peek(entry))
        # the object is not kept in the entry, because its deallocation would block the event loop
        return use_large(partial(self._conversion.object, entry), partial(protobuf.item, self._message))

    def to_form(self, obj: Object, accepted: Accepted) -> Object:
        """Return `obj`, which is not a stored object, or its PartialObjectMetadata if that was negotiated."""
        if not accepted.form:
            return obj
        api_version, kind = self._type(accepted)
        return {"kind": kind, "apiVersion": api_version, "metadata": obj.get("metadata", {})}

    def _type(self, accepted: Accepted) -> tuple[str, str]:
        return (f"{META_GROUP}/{accepted.form_version}", PARTIAL) if accepted.form else (self._api_version, self._kind)

    def list_parts(
        self, metadata: Object, items: Sequence[bytes], accepted: Accepted
    ) -> tuple[bytes, Sequence[bytes], bytes]:
        """Return the bytes of a list before its items, the items, and the bytes after them.

        Args:
            metadata: the metadata of the list.
            items: the results of `item`.
        """
        if accepted.form:
            return protobuf.list_parts(f"{META_GROUP}/{accepted.form_version}", PARTIAL_LIST, metadata, items)
        return protobuf.list_parts(self._api_version, self._list_kind, metadata, items)
