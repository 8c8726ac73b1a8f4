"""Watches: one JSON line, protobuf message or CBOR item per event, until timeout, client or server ends them.

An event is encoded once for all watchers: an object in JSON is its bytes between a head and a tail, other forms are
cached with the object.

As upstream, a watch-list is compressed if the client accepts gzip. Each write is a separate deflate block, so that an
idle watch keeps almost no compression state. The block of an event is compressed once for all watchers.

A client that requests an upgrade to WebSocket gets each event as an uncompressed message.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go, response.go (watchEncoder)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.endpoints.gzip_encoding import HEADERS, BlockStream, accepts_gzip, block, block_of
from tetrapod.generic.endpoints.large_events import PIECE, are_large, in_parts, turn
from tetrapod.generic.endpoints.options import ListOptions
from tetrapod.generic.endpoints.representation import Representation, json_headers
from tetrapod.generic.endpoints.scope import Scope
from tetrapod.generic.endpoints.serialization_spans import serialization_attributes
from tetrapod.generic.endpoints.sharded_watch import ShardedWatch, counted_predicate
from tetrapod.generic.endpoints.tables import partial_bytes, partial_of
from tetrapod.generic.endpoints.watch_metrics import TO_INITIAL_END, sent_of
from tetrapod.generic.http import websocket_stream
from tetrapod.generic.http.negotiation.accept import (
    CBOR,
    CBOR_SEQUENCE,
    PARTIAL_LIST,
    PROTOBUF,
    TABLE,
    YAML,
    Accepted,
    watch_types,
)
from tetrapod.generic.http.request import ClientGone, HeaderList, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.http.websocket import is_websocket_request
from tetrapod.generic.http.websocket_stream import serve_messages, watch_handshake
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.registry.predicate import Selection
from tetrapod.generic.storage.cacher.counters import counters_of
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import Watch, WatchEvent
from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.requestinfo import scope_of
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer.json import encode
from tetrapod.machinery.status import method_not_supported, not_acceptable

log = logging.getLogger(__name__)

LAST_BOOKMARK: Final = 2.0
"""Seconds before the timeout at which a watch with bookmarks gets a last one. Upstream:
cacheWatcher.nextBookmarkTime
"""
HIGH_WATER: Final = 1 << 20
"""Unsent bytes above which the server waits for the client."""
MOST_BEHIND: Final = 4096
"""Events that may be queued for a slow client."""
BATCH: Final = 100
FORMED_AT_ONCE: Final = 10
"""Initial events in another form than the stored one that are encoded in one step of the event loop."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
GZIP: Final = "gzip"


async def watch(
    scope: Scope, request: Request, options: ListOptions, selection: Selection, accepted: Accepted
) -> Response:
    """Open a watch and return the response that streams its events.

    Args:
        selection: the objects to watch, from the selectors and the path.

    Raises:
        StatusError: the resource has no watch (405), YAML is requested (406), `includeObject` of a Table is invalid
            (400), or the resource version is malformed (500) or was not reached in time (504).
    """
    if scope.rest is not None or "watch" not in scope.definition.verbs:
        raise method_not_supported(scope.definition.group_resource, "watch")
    frames = _FRAMES.get(accepted.media_type, Frames)(scope, accepted)
    query = WatchQuery(
        prefix=selection.prefix,
        predicate=counted_predicate(selection.predicate, scope.definition.group_resource),
        resource_version=options.resource_version,
        match=options.resource_version_match,
        bookmarks=options.allow_watch_bookmarks,
        initial_events=options.send_initial_events,
        single=selection.single,
    )
    seconds = float(options.timeout_seconds or 0) or request.min_watch_seconds * (random.random() + 1.0)
    source = await scope.store.watch(scope.context(request), query)
    if accepted.media_type == YAML:  # upstream negotiates after it has opened the watch
        source.close()
        raise not_acceptable(f"only the following media types are accepted: {', '.join(watch_types())}")
    if selection.shard is not None:
        source = ShardedWatch(source, scope.definition.group_resource)
    if request.upgrade is not None and is_websocket_request(request.headers):
        return _over_websocket(source, frames, seconds, request, bookmarks=query.bookmarks)
    compressible = bool(query.initial_events and query.bookmarks) and feature_gates.enabled("WatchListCompression")
    gzip = compressible and accepts_gzip(request)
    headers = [*frames.headers(), *HEADERS] if gzip else frames.headers()
    serving = _Serving(source, frames, seconds, request, gzip=gzip, bookmarks=query.bookmarks)
    return StreamResponse(200, headers, serving.run, endless=True)


def _over_websocket(source: Watch, frames: Frames, seconds: float, request: Request, *, bookmarks: bool) -> Response:
    """Return the response that sends the events of `source` as WebSocket messages, or the rejection of the handshake.

    Args:
        source: the watch, which is closed if the handshake is rejected.
        frames: encodes its events.
        seconds: the timeout of the watch.
        request: the request of the client.
        bookmarks: whether the client allows bookmarks, and so gets one before the timeout.

    Upstream: WatchServer.HandleWS
    """
    handshake = watch_handshake(request)
    if isinstance(handshake, Response):
        source.close()
        return handshake
    serving = _Serving(source, frames, seconds, request, gzip=False, bookmarks=bookmarks, separate=True)
    return serve_messages(handshake, serving.run, frames.message)


class _Serving:
    """One watch being served. Events are written directly when the cache applies a change, without waking a task.

    While the client is slow, events wait in a queue as event objects, which all watches share, and are encoded later. A
    client that stays slow is disconnected. Large events wait in that queue too, and are written in parts
    (large_events.py).

    Args:
        source: the watch.
        frames: encodes its events.
        seconds: the timeout of the watch.
        request: the request of the client.
        gzip: whether the response is compressed.
        bookmarks: whether the client allows bookmarks, and so gets one before the timeout.
        separate: whether each event is written on its own, because each write is a message.
    """

    def __init__(
        self,
        source: Watch,
        frames: Frames,
        seconds: float,
        request: Request,
        *,
        gzip: bool,
        bookmarks: bool,
        separate: bool = False,
    ) -> None:
        self._separate = separate
        self._bookmarks = bookmarks
        self._gzip = BlockStream() if gzip else None
        self._source, self._frames, self._seconds = source, frames, seconds
        self._received, self._scope = request.received, scope_of(request.info) if request.info is not None else ""
        self._behind: deque[WatchEvent] = deque()
        self._catching_up: asyncio.Task[None] | None = None
        self._unwritten = memoryview(b"")  # the rest of an event of which a part is written

    async def run(self, writer: StreamWriter) -> None:
        """Write the events until the watch ends or its timeout expires, and close the watch."""
        self._writer = writer
        last_bookmark: asyncio.TimerHandle | None = None
        if self._bookmarks and self._seconds > LAST_BOOKMARK:
            last_bookmark = asyncio.get_running_loop().call_later(
                self._seconds - LAST_BOOKMARK, self._source.send_bookmark
            )
        try:
            if self._seconds > 0:  # upstream's `timeoutSeconds=-1` has expired before the first event
                async with asyncio.timeout(self._seconds) as limit:
                    await self._serve()
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._source.close()
            if last_bookmark is not None:
                last_bookmark.cancel()
            if self._catching_up is not None:
                self._catching_up.cancel()
            writer.write(bytes(self._unwritten))
        if self._gzip is not None:
            writer.write(self._gzip.end())

    @traced(
        "WatchServer.HandleHTTP",
        lambda self: self._frames.span_attributes(),
        events=("About to start writing response", ""),
    )
    async def _serve(self) -> None:
        await (self._pull() if self._frames.asynchronous else self._push())

    async def _push(self) -> None:
        source, first = self._source, True
        async for batch in source.initial():
            for part in in_parts(batch, self._frames.at_once):
                if not first:
                    await asyncio.sleep(0)
                first = False
                if not await self._send_part(part):
                    return
                await self._keep_pace()
            self._begun(batch)
        source.subscribe(self._take)
        await source.ended()
        if self._catching_up is not None:
            await self._catching_up

    def _take(self, events: Sequence[WatchEvent]) -> None:
        """Write events, or queue them while the client is slow. This is the sink of the watch, called by the cache."""
        if self._catching_up is not None:
            self._behind.extend(events)
            if len(self._behind) > MOST_BEHIND:
                log.warning("a watch was ended: its client is too slow")
                group, _, resource = self._frames.resource_key
                counters_of(group, resource).terminated += 1
                self._behind.clear()
                self._source.close()
            return
        if are_large(events):
            self._behind.extend(events)
            self._catching_up = asyncio.create_task(self._catch_up())
            return
        frames = list(map(self._frames.shared_frame, events))
        blocks = list(map(self._frames.shared_block, events, frames)) if self._gzip is not None else frames
        if not self._write(frames, blocks):
            self._source.close()
        elif self._writer.buffered() > HIGH_WATER:
            self._catching_up = asyncio.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        with contextlib.suppress(ClientGone):
            await self._writer.drain()
            while self._behind:
                batch = [self._behind.popleft() for _ in range(min(BATCH, len(self._behind)))]
                for part in in_parts(batch, BATCH):
                    if not await self._send_part(part):
                        self._source.close()
                        return
                    await self._keep_pace()
            self._catching_up = None

    async def _pull(self) -> None:
        """Write the events until the watch ends, for a resource whose objects a conversion webhook converts.

        Before a batch of events is encoded, the webhook converts its objects.
        """
        frames = self._frames
        async for batch in self._source:
            await frames.representation.conversion.ready([event.entry for event in batch if event.entry is not None])
            for part in in_parts(batch, len(batch)):
                if not await self._send_part(part):
                    return
                await self._keep_pace()
            self._begun(batch)

    def _begun(self, batch: Sequence[WatchEvent]) -> None:
        """If `batch` completes the initial events, record the time since the request arrived in the metric."""
        if batch and batch[-1].initial_end:
            TO_INITIAL_END.observe((*self._frames.resource_key, self._scope), time.monotonic() - self._received)

    async def _send_part(self, events: Sequence[WatchEvent]) -> bool:
        """Encode and write a part of `in_parts`. A large event is written in pieces, as fast as the client reads it.

        Return False if the watch must end, because events cannot be encoded in the form that the client accepts; else
        True.

        Raises:
            ClientGone: the client has disconnected.
        """
        if not are_large(events):
            return await self._send(list(map(self._frames.frame, events)))
        await turn()
        (event,) = events
        frame = self._frames.shared_frame(event)
        if self._gzip is not None:
            return self._write([frame], [self._frames.shared_block(event, frame)])
        if self._separate or len(frame) <= PIECE:
            return self._write([frame], [frame])
        self._frames.sent.count([frame])
        self._unwritten = memoryview(frame)
        while self._unwritten:
            piece, self._unwritten = bytes(self._unwritten[:PIECE]), self._unwritten[PIECE:]
            self._writer.write(piece)
            if self._unwritten:
                await self._writer.drain()
                await turn()
        return True

    async def _send(self, frames: list[bytes]) -> bool:
        """Write frames (encoded events), compressing them only for this watch.

        Return False if the watch must end, because events cannot be encoded in the form that the client accepts; else
        True.
        """
        return self._write(
            frames, [await block_of(b"".join(frames))] if self._gzip is not None and any(frames) else frames
        )

    def _write(self, frames: list[bytes], written: list[bytes]) -> bool:
        """Write frames (encoded events).

        Args:
            frames: the uncompressed frames, for metrics and the checksum.
            written: the bytes to send: the frames, or their compressed blocks.

        Returns:
            False if the watch must end, because events cannot be encoded in the form that the client accepts; else
            True.
        """
        if self._separate:
            return self._write_separately(frames)
        data = written[0] if len(written) == 1 else b"".join(written)
        if not data and self._frames.impossible:
            return False
        self._writer.write(data if self._gzip is None else self._gzip.take(frames, data))
        self._frames.sent.count(frames)
        return True

    def _write_separately(self, frames: list[bytes]) -> bool:
        if self._frames.impossible and not any(frames):
            return False
        for frame in frames:
            self._writer.write(frame)
        self._frames.sent.count(frames)
        return True

    async def _keep_pace(self) -> None:
        if self._writer.buffered() > HIGH_WATER:
            await self._writer.drain()


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
        self._accepted = accepted
        self._form, self._version = accepted.form, accepted.form_version
        self._tables = scope.representation.tables(accepted) if accepted.form == TABLE else None
        self._first = True
        self.at_once = BATCH if self._plain else FORMED_AT_ONCE
        self._keys = {kind: (kind, scope.kind.api_version) for kind in _HEADS}

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

        If the watch gets complete objects in JSON, the result is cached in the event's entry, so that all watches share
        it.
        """
        entry = event.entry
        if entry is None or not self._shares:
            return self.frame(event)
        representations, key = entry.representations, self._keys[event.type]
        encoded: bytes | None = representations.get(key)
        if encoded is None:
            encoded = representations[key] = _HEADS[event.type] + self._conversion.bytes(entry) + b"}\n"
        return encoded

    def shared_block(self, event: WatchEvent, frame: bytes) -> bytes:
        """Return `frame`, the result of `shared_frame` for this event, compressed.

        If the watch gets complete objects in JSON, the result is cached in the event's entry too.
        """
        entry = event.entry
        if entry is None or not self._shares:
            return block(frame) if frame else b""
        representations, key = entry.representations, (GZIP, *self._keys[event.type])
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
            metadata["annotations"] = {**metadata.get("annotations", {}), INITIAL_EVENTS_END: "true"}
        return obj | {"metadata": metadata}


class MessageFrames(Frames):
    """Encodes the events of one watch as protobuf messages, each preceded by its length."""

    def __init__(self, scope: Scope, accepted: Accepted) -> None:
        super().__init__(scope, accepted)
        self._shares = False

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


class CborFrames(Frames):
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


_FRAMES: Final = {PROTOBUF: MessageFrames, CBOR: CborFrames}
