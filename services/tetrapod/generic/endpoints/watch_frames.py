"""`Frames`: the events of one watch, encoded as JSON lines, protobuf messages or a CBOR sequence.

An event is encoded once for all watchers: an object in JSON is its bytes between a head and a tail, other forms are
cached with the object.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go, watchEncoder
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.endpoints.representation import Representation, json_headers
from tetrapod.generic.endpoints.scope import Scope
from tetrapod.generic.endpoints.serialization_spans import serialization_attributes
from tetrapod.generic.endpoints.tables import partial_bytes, partial_of
from tetrapod.generic.endpoints.watch_metrics import sent_of
from tetrapod.generic.http import websocket_stream
from tetrapod.generic.http.gzip_encoding import block
from tetrapod.generic.http.negotiation.accept import (
    CBOR,
    CBOR_SEQUENCE,
    JSON,
    PARTIAL_LIST,
    PROTOBUF,
    TABLE,
    Accepted,
)
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer.json import encode

BATCH: Final = 100
"""Events in the stored form that are encoded in one step of the event loop."""
FORMED_AT_ONCE: Final = 10
"""Initial events in another form than the stored one that are encoded in one step of the event loop."""
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_GZIP: Final = "gzip"
_HEADS: Final = {
    kind: f'{{"type":"{kind}","object":'.encode() for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


class Frames:
    """Encodes the events of one watch as JSON lines, in the accepted form (the object, Table or PartialObjectMetadata).

    An encoded event is called a frame. `impossible` is True if the accepted form is that of a list, in which no object
    can be encoded: the watch then ends at its first event. `asynchronous` is True if a webhook converts the objects.

    Args:
        scope: the endpoint.
        accepted: the media type and the form of the response.
    """

    media_type = JSON

    def __init__(self, scope: Scope, accepted: Accepted) -> None:
        self.representation: Representation = scope.representation
        self.asynchronous = scope.definition.convert_many is not None
        # an object cannot be a list, and upstream ends the watch at the first event
        self.impossible = accepted.form == PARTIAL_LIST
        self._scope = scope
        self.resource_key = (scope.gvr.group, scope.gvr.version, scope.gvr.resource)
        self.sent = sent_of(self.resource_key)
        self._conversion = scope.representation.conversion
        self._plain = not accepted.form
        self._shares = self._plain  # whether frames are cached in entries for all watches
        self._keys = {kind: (self.media_type, kind, scope.kind.api_version) for kind in _HEADS}
        self._accepted = accepted
        self._form, self._version = accepted.form, accepted.form_version
        self._tables = scope.representation.tables(accepted) if accepted.form == TABLE else None
        self._first = True
        self.at_once = BATCH if self._plain else FORMED_AT_ONCE

    def span_attributes(self) -> dict[str, Any]:
        """Return the attributes of the current span, in which the events are sent."""
        return serialization_attributes(self._scope.kind.api_version, self._accepted, watch=True)

    def headers(self) -> HeaderList:
        """Return the response headers, with the content type."""
        return json_headers()

    def message(self, event: bytes) -> bytes:
        """Return the WebSocket frame for an encoded event."""
        return websocket_stream.text(event)

    def shared_frame(self, event: WatchEvent) -> bytes:
        """Return the result of `frame` for this event.

        If the watch gets complete objects in JSON or protobuf, the result is cached in the event's entry, so that all
        watches share it.
        """
        entry = event.entry
        if entry is None or not self._shares:
            return self.frame(event)
        representations, key = entry.representations, self._keys[event.type]
        encoded: bytes | None = representations.get(key)
        if encoded is None:
            encoded = representations[key] = self.frame(event)
        return encoded

    def shared_block(self, event: WatchEvent, frame: bytes) -> bytes:
        """Return `frame`, the result of `shared_frame` for this event, compressed.

        If the watch gets complete objects in JSON or protobuf, the result is cached in the event's entry too.
        """
        entry = event.entry
        if entry is None or not self._shares:
            return block(frame) if frame else b""
        representations, key = entry.representations, (_GZIP, *self._keys[event.type])
        compressed: bytes | None = representations.get(key)
        if compressed is None:
            compressed = representations[key] = block(frame)
        return compressed

    def frame(self, event: WatchEvent) -> bytes:
        """Return an encoded event, with its object in the negotiated form; b"" if `impossible` is True."""
        entry = event.entry
        if entry is not None and self._plain:
            return _HEADS[event.type] + self._conversion.bytes(entry) + b"}\n"
        if event.type == "ERROR":
            return b"%b%b}\n" % (_HEADS["ERROR"], orjson.dumps(event.status))
        if self.impossible:
            return b""
        if entry is not None:
            obj = self._partial(entry) if self._tables is None else self._table(entry, event)
        else:
            obj = self._bookmark(event)
        return b"%b%b}\n" % (_HEADS[event.type], obj)

    def _partial(self, entry: Entry) -> bytes:
        return partial_of(entry, self._conversion, self._version)

    def _table(self, entry: Entry, event: WatchEvent) -> bytes:
        assert self._tables is not None
        return self._one_row(self._tables.row_of(entry, self._conversion), event.revision or entry.revision)

    def _one_row(self, row: bytes, revision: int) -> bytes:
        assert self._tables is not None
        convertor = self._scope.representation.table
        columns = self._first or (convertor is not None and convertor.repeats_columns)
        table = self._tables.table([row], {"resourceVersion": str(revision)}, columns=columns)
        self._first = False
        return table

    def _bookmark(self, event: WatchEvent) -> bytes:
        """Return the encoded object of a bookmark, which has only a resourceVersion.

        The bookmark that ends the initial events also has an annotation.
        """
        obj = self._empty_object(str(event.revision), event.initial_end)
        if self._plain:
            return encode(obj)
        if self._tables is not None:
            return self._one_row(self._tables.row(obj, encode(obj)), event.revision)
        return partial_bytes(encode(obj), self._version)

    def _empty_object(self, revision: str, initial_end: bool) -> Object:
        scope = self._scope
        obj: dict[str, Any] = {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version, "metadata": {}}
        if not scope.definition.custom:
            zero = typed.without_defaults(scope.definition.schema(scope.version))
            obj.update((key, value) for key, value in zero.items() if key not in obj)
        if self._plain:  # these members are fields upstream, which Tables and partial objects do not show
            obj.update((name, {**obj.get(name, {}), **members}) for name, members in scope.definition.empty.items())
        metadata = {**obj["metadata"], "resourceVersion": revision}
        if initial_end:
            metadata["annotations"] = {**metadata.get("annotations", {}), _INITIAL_EVENTS_END: "true"}
        return obj | {"metadata": metadata}


class _MessageFrames(Frames):
    """Encodes the events of one watch as protobuf messages, each preceded by its length."""

    media_type = PROTOBUF

    def headers(self) -> HeaderList:
        return [(b"content-type", f"{PROTOBUF};stream=watch".encode())]

    def message(self, event: bytes) -> bytes:
        """Return the WebSocket frame for an encoded event, without the length, which a message does not need."""
        return websocket_stream.binary(event[protobuf.LENGTH_BYTES :])

    def frame(self, event: WatchEvent) -> bytes:
        messages = self.representation.messages
        if event.type == "ERROR":
            return protobuf.frame(event.type, protobuf.encode(event.status or {}))
        if self.impossible:
            return b""
        if event.entry is not None:
            return protobuf.frame(event.type, messages.entry(event.entry, self._accepted))
        bookmark = self._empty_object(str(event.revision), event.initial_end)
        return protobuf.frame(event.type, protobuf.encode(messages.to_form(bookmark, self._accepted)))


class _CborFrames(Frames):
    """Encodes the events of one watch as a CBOR sequence."""

    def __init__(self, scope: Scope, accepted: Accepted) -> None:
        super().__init__(scope, accepted)
        from tetrapod.machinery import cbor

        self._shares = False
        self._cbor = cbor
        self.at_once = FORMED_AT_ONCE
        self._key = (CBOR, scope.kind.api_version)

    def headers(self) -> HeaderList:
        return [(b"content-type", CBOR_SEQUENCE.encode())]

    def message(self, event: bytes) -> bytes:
        """Return the WebSocket frame for an encoded event."""
        return websocket_stream.binary(event)

    def frame(self, event: WatchEvent) -> bytes:
        entry = event.entry
        if entry is None or not self._plain:
            encoded = super().frame(event)
            obj = self._cbor.shuffled(orjson.loads(encoded)["object"]) if encoded else b""
        else:
            obj = self._cbor.rotated(self._members(entry))
        return self._cbor.event(event.type, obj) if obj else b""

    def _members(self, entry: Entry) -> Sequence[bytes]:
        """Return the members of an object, each encoded as CBOR, from a cache in the entry that all watches share."""
        encoded: Sequence[bytes] | None = entry.representations.get(self._key)
        if encoded is None:
            encoded = entry.representations[self._key] = self._cbor.members(self._conversion.peek(entry))
        return encoded


FRAMES: Final = {PROTOBUF: _MessageFrames, CBOR: _CborFrames}
"""The class of the frames by media type; `Frames` itself for all others."""
