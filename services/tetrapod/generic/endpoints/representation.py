"""Encodes entries and lists in a version, a form (the object itself, Table, PartialObjectMetadata) and a media type.

Objects in the storage version are sliced from the bytes in the watch cache. A list is a join of such slices; large ones
are written in pieces so that other requests need not wait.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.endpoints.list_chunks import (
    PIECE_ITEMS,
    STREAM_FROM,
    ListBody,
    ListStream,
    iterated,
    joined,
)
from tetrapod.generic.endpoints.protobuf_entries import Messages
from tetrapod.generic.endpoints.serialization_spans import serialization_attributes
from tetrapod.generic.endpoints.tables import Tables, check_include_object, metadata_of, partial_bytes
from tetrapod.generic.http.negotiation.accept import (
    CBOR,
    JSON,
    MEDIA_TYPES,
    PARTIAL,
    PARTIAL_LIST,
    PLAIN,
    PROTOBUF,
    TABLE,
    Accepted,
)
from tetrapod.generic.http.negotiation.documents import encode_document
from tetrapod.generic.http.request import HeaderList, Response, StreamResponse, StreamWriter
from tetrapod.generic.observability.tracing.spans import current, marked, traced
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.latency import SERIALIZATION, LayerTimer
from tetrapod.generic.storage.queries import ListPage
from tetrapod.machinery.freeing import use_large
from tetrapod.machinery.go_packages import go_type
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.json_pieces import loads
from tetrapod.machinery.serializer.json import encode
from tetrapod.machinery.sharding import ShardSelector
from tetrapod.machinery.status import StatusError, not_acceptable
from tetrapod.machinery.table import TableConvertor

_PIECE_MESSAGES: Final = 50
"""Encoding an entry as protobuf for the first time takes longer, so a piece has fewer of them."""

_CONTENT_TYPES: Final = {media_type: (b"content-type", media_type.encode()) for media_type in (*MEDIA_TYPES, CBOR)}


def json_headers() -> HeaderList:
    """Return a new list of response headers with the content type of JSON."""
    return [_CONTENT_TYPES[JSON]]


_RESPONDING: Final = ("About to write a response", "Writing http response done")
_WRITING: Final = ("About to start writing response", "Write call succeeded")
"""Upstream's names of events: those of the verb's span, and those of the span SerializeObject in it."""


def _attributes(representation: Representation, _: object, accepted: Accepted, *__: object) -> dict[str, Any]:
    """Return the attributes of the span in which a method of `Representation` encodes. The parameters are its own."""
    return serialization_attributes(representation.conversion.api_version, accepted)


class Representation:
    """The encoder of the responses of one resource in one version.

    In all methods, `accepted` is the negotiated media type, with the form of the object: the object itself, a Table or
    PartialObjectMetadata. They raise StatusError (406) if the response cannot have that form, such as a list the form
    PartialObjectMetadata.

    Args:
        definition: the resource.
        version: the version of the responses.
        table: the columns of a subresource's own kind; None means those of the resource.
        kind: the subresource's own kind; None means that of the resource.
    """

    def __init__(
        self,
        definition: ResourceDefinition,
        version: str,
        table: TableConvertor | None = None,
        kind: GroupVersionKind | None = None,
    ) -> None:
        self.definition = definition
        self.table = table or definition.table
        self.conversion = Conversion(definition, version)
        self.messages = Messages(definition, self.conversion)
        list_kind = definition.list_kind or f"{definition.kind}List"
        self._list_head = f'{{"kind":"{list_kind}","apiVersion":"{self.conversion.api_version}","metadata":'.encode()
        self._go_type = go_type(definition.group, definition.kind, custom=definition.custom)
        self._is_untyped = definition.custom and kind is None
        if kind is not None:  # the types of custom resources' own scheme are those of the version
            self._go_type = f"*{kind.version}.{kind.kind}" if definition.custom else go_type(kind.group, kind.kind)

    # --- one object ---

    @traced("SerializeObject", _attributes, events=_WRITING, around=_RESPONDING)
    async def entry(self, entry: Entry, accepted: Accepted, status: int = 200) -> Response:
        """Return the response with one stored object, encoded as negotiated.

        Raises:
            StatusError: 406, the negotiated form is that of a list (for a custom resource a 500); 400,
                `includeObject` of a Table is invalid; 500, the conversion webhook failed.
        """
        conversion = self.conversion
        if conversion.identity and (accepted is PLAIN or accepted.plain) and accepted.media_type != PROTOBUF:
            return Response(status, [_CONTENT_TYPES[JSON]], conversion.bytes(entry) + b"\n")
        await conversion.ready((entry,))
        with LayerTimer(SERIALIZATION):
            return await offloaded(len(entry.raw) >= LARGE, self._made_from, entry, accepted, status)

    def _made_from(self, entry: Entry, accepted: Accepted, status: int) -> Response:
        conversion = self.conversion
        if accepted.media_type == PROTOBUF:
            self._check_form(accepted)
            return Response(status, [_CONTENT_TYPES[PROTOBUF]], self.messages.entry(entry, accepted))
        if accepted is PLAIN or accepted.plain:
            return Response(status, [_CONTENT_TYPES[JSON]], conversion.bytes(entry) + b"\n")
        match accepted.form:
            case "PartialObjectMetadata":
                return self._form_response(entry.peek, conversion.metadata_bytes(entry), accepted, status)
            case "Table":
                tables = self.tables(accepted)
                obj = entry.peek() if entry.size < LARGE else {"metadata": orjson.loads(metadata_of(entry.raw))}
                return self._table(tables, tables.row_of(entry, conversion), obj, accepted, status)
        return self._form_response(lambda: conversion.peek(entry), conversion.bytes(entry), accepted, status)

    def object(self, obj: Object, accepted: Accepted, status: int = 200) -> Response:
        """Return the response with an object that is not stored: a Status, or the result of a handler without storage.

        A Status of v1 is never converted to a Table or PartialObjectMetadata.
        """
        if (span := current()) is None:
            return self._object(obj, accepted, status)
        with marked(span, _RESPONDING), span.child("SerializeObject") as step:
            step.put(serialization_attributes(str(obj.get("apiVersion", "")), accepted))
            with marked(step, _WRITING):
                return self._object(obj, accepted, status)

    def _object(self, obj: Object, accepted: Accepted, status: int) -> Response:
        if obj.get("kind") == "Status" and obj.get("apiVersion") == "v1":
            return document(obj, Accepted(accepted.media_type, pretty=accepted.pretty), status)
        if accepted.media_type == PROTOBUF:
            self._check_form(accepted)
            return document(self.messages.to_form(obj, accepted), accepted, status)
        raw = encode(obj)
        if accepted.plain:
            return Response(status, [_CONTENT_TYPES[JSON]], raw + b"\n")
        return self._form_response(lambda: obj, raw, accepted, status)

    def _form_response(self, peek: Callable[[], Object], raw: bytes, accepted: Accepted, status: int) -> Response:
        match accepted.form:
            case "":
                body = raw
            case "PartialObjectMetadata":
                body = partial_bytes(raw, accepted.form_version)
            case "Table":
                tables, obj = self.tables(accepted), peek()
                return self._table(tables, tables.row(obj, raw), obj, accepted, status)
            case _:
                self._check_form(accepted)
        return self._encode_response(body, accepted, status)

    def _table(self, tables: Tables, row: bytes, obj: Object, accepted: Accepted, status: int) -> Response:
        version = obj.get("metadata", {}).get("resourceVersion")
        return self._encode_response(
            tables.table([row], {"resourceVersion": version} if version else {}), accepted, status
        )

    def _check_form(self, accepted: Accepted) -> None:
        if accepted.form == PARTIAL_LIST:
            if self._is_untyped:  # upstream treats untyped content as a list until it looks for the items
                raise StatusError(500, "", "content is not a list")
            raise not_acceptable(
                f"you requested {PARTIAL_LIST}, but the requested object is not a list ({self._go_type})"
            )

    def _encode_response(self, body: bytes, accepted: Accepted, status: int) -> Response:
        if accepted.media_type == JSON and not accepted.pretty:
            return Response(status, [_CONTENT_TYPES[JSON]], body + b"\n")
        return _write(body, accepted, status)

    def tables(self, accepted: Accepted) -> Tables:
        """Return the encoder for Tables in the accepted version and with the accepted `includeObject`.

        Raises:
            StatusError: 400, the value of `includeObject` is invalid.
        """
        return Tables(self.table, accepted.form_version, check_include_object(accepted.include))

    # --- lists ---

    @traced("SerializeObject", _attributes, events=_WRITING, around=_RESPONDING)
    async def page(self, page: ListPage, accepted: Accepted, shard: ShardSelector | None = None) -> Response:
        """Return the response with a page of a list, encoded as negotiated; from 128 KiB on it is streamed.

        Args:
            page: the objects.
            accepted: the negotiated media type and form.
            shard: the shard selector of the request, which complete lists of built-in kinds contain; None without one.

        Raises:
            StatusError: 406, the negotiated form is that of one object; 400, `includeObject` of a Table is invalid;
                500, the conversion webhook failed.
        """
        await self.conversion.ready(page.entries)
        metadata: Object = {"resourceVersion": page.resource_version}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        if shard is not None and not self.definition.custom and accepted.form not in (TABLE, PARTIAL_LIST):
            metadata["shardInfo"] = {"selector": str(shard)}
        with (timer := LayerTimer(SERIALIZATION)):
            response = await self._page(page.entries, metadata, accepted)
        if isinstance(response, StreamResponse):
            response.run = _timed(response.run, timer)
        return response

    async def _page(self, entries: Sequence[Entry], metadata: Object, accepted: Accepted) -> Response:
        if accepted.media_type == PROTOBUF:
            return await self._page_of_messages(entries, metadata, accepted)
        listed = self._list_body(entries, metadata, accepted)
        if accepted.media_type != JSON or accepted.pretty:
            body = await listed.joined()
            return await offloaded(len(body) >= LARGE, _write, body, accepted, 200)
        line, headers = await listed.line(), [_CONTENT_TYPES[JSON]]
        return Response(200, headers, line) if isinstance(line, bytes) else StreamResponse(200, headers, line.run)

    def _list_body(self, entries: Sequence[Entry], metadata: Mapping[str, Any], accepted: Accepted) -> ListBody:
        self._check_list_form(accepted)
        if accepted.form == TABLE:
            tables = self.tables(accepted)
            if not entries:
                return ListBody(tables.table((), metadata), (), _nothing, b"")
            conversion, tables = self.conversion, tables.of_list(entries)
            head = tables.head(metadata) + b"["
            return ListBody(
                head,
                tables.in_order(entries),
                lambda part: joined(part, lambda e: tables.row_of(e, conversion)),
                b"]}",
                whole=False,
            )
        encoded = orjson.dumps(metadata)
        if accepted.form == PARTIAL_LIST:
            version = accepted.form_version
            head = b'{"kind":"%b","apiVersion":"meta.k8s.io/%b","metadata":%b,"items":' % (
                PARTIAL_LIST.encode(),
                version.encode(),
                encoded,
            )
            if not entries:
                return ListBody(head + b"null}", (), _nothing, b"")
            to_bytes = self.conversion.metadata_bytes
            return ListBody(
                head + b"[",
                entries,
                lambda part: joined(part, lambda e: partial_bytes(to_bytes(e), version)),
                b"]}",
                whole=False,
            )
        if self.definition.custom and "continue" not in metadata:
            encoded = b'{"continue":"",' + encoded[1:]  # upstream's untyped lists always include it
        return ListBody(
            b'%b%b,"items":[' % (self._list_head, encoded),
            entries,
            self._items,
            b"]}",
            parses=not self.conversion.identity,
        )

    def objects(self, listed: Object, accepted: Accepted) -> Response:
        """Return the response with a list object of a handler without storage. Its items lack kind and apiVersion."""
        self._check_list_form(accepted)
        if not accepted.form or accepted.media_type == PROTOBUF:
            return self.object(listed, accepted)
        type_meta = {"kind": self.definition.kind, "apiVersion": self.conversion.api_version}
        items = [{**type_meta, **item} for item in listed.get("items") or ()]
        metadata = listed.get("metadata") or {}
        if accepted.form == TABLE:
            tables = self.tables(accepted)
            return self._encode_response(
                tables.table([tables.row(item, encode(item)) for item in items], metadata), accepted, 200
            )
        version = f"meta.k8s.io/{accepted.form_version}"
        partial = [{"kind": PARTIAL, "apiVersion": version, "metadata": item["metadata"]} for item in items]
        body: Object = {"kind": PARTIAL_LIST, "apiVersion": version, "metadata": metadata, "items": partial or None}
        return self._encode_response(encode(body), accepted, 200)

    def _check_list_form(self, accepted: Accepted) -> None:
        if accepted.form == PARTIAL:
            go_type = "*unstructured.UnstructuredList" if self.definition.custom else f"{self._go_type}List"
            raise not_acceptable(f"you requested {PARTIAL}, but the requested object is a list ({go_type})")

    async def _page_of_messages(self, entries: Sequence[Entry], metadata: Object, accepted: Accepted) -> Response:
        """Return a list as protobuf, streamed if it has at least 128 KiB.

        All items are encoded before the first is written, because the length of a message precedes it.

        Args:
            entries: the objects of the page.
            metadata: the ListMeta.
            accepted: the negotiated media type and form.

        Raises:
            StatusError: 406, the form is PartialObjectMetadata instead of PartialObjectMetadataList.
        """
        self._check_list_form(accepted)
        items: list[bytes] = []
        for start in range(0, len(entries), _PIECE_MESSAGES):
            chunk = entries[start : start + _PIECE_MESSAGES]
            large_items = any(len(entry.raw) >= LARGE for entry in chunk)
            items += await offloaded(large_items, lambda: [self.messages.item(entry, accepted) for entry in chunk])  # noqa: B023  (awaited)
            await asyncio.sleep(0)
        head, parts, tail = self.messages.list_parts(metadata, items, accepted)
        headers = [_CONTENT_TYPES[PROTOBUF]]
        if sum(map(len, parts)) < STREAM_FROM:
            return Response(200, headers, b"".join((head, *parts, tail)))
        pieces = iterated(b"".join(parts[start : start + PIECE_ITEMS]) for start in range(0, len(parts), PIECE_ITEMS))
        return StreamResponse(200, headers, ListStream(head, pieces, tail, comma=False).run)

    def _items(self, entries: Sequence[Entry]) -> bytes:
        """Return list items, each preceded by a comma. Items of built-in kinds lack kind and apiVersion."""
        conversion, prefix, custom = self.conversion, self.conversion.prefix, self.definition.custom
        if conversion.identity:
            items = [entry.item for entry in entries if entry.head == prefix]
            if len(items) == len(entries):
                between = b"," + prefix if custom else b",{"
                return between.join([b"", *items])
        return joined(entries, conversion.bytes if custom else self._item)

    def _item(self, entry: Entry) -> bytes:
        """Return a list item, without kind and apiVersion, for an object in another version than the stored one."""
        raw = self.conversion.bytes(entry)
        if raw.startswith(self.conversion.prefix):
            return b"{" + raw[len(self.conversion.prefix) :]
        obj = orjson.loads(raw)
        return orjson.dumps({key: value for key, value in obj.items() if key not in ("kind", "apiVersion")})


def _timed(
    run: Callable[[StreamWriter], Awaitable[None]], timer: LayerTimer
) -> Callable[[StreamWriter], Awaitable[None]]:
    """Return a function that awaits `run`, which writes the body of a response, and measures its time by `timer`."""

    async def timed(writer: StreamWriter) -> None:
        with timer:
            await run(writer)

    return timed


def _nothing(_: Sequence[Entry]) -> bytes:
    return b""


def _write(body: bytes, accepted: Accepted, status: int) -> Response:
    """Return a response with the value of a JSON text, in another encoding; the value is made and freed in parts."""
    return use_large(lambda: loads(body), lambda value: document(value, accepted, status))


def document(value: Any, accepted: Accepted, status: int = 200) -> Response:
    """Return a response with any JSON value, encoded in the accepted media type.

    Raises:
        StatusError: 406, the media type is protobuf and the kind has no message.
    """
    return Response(
        status,
        [_CONTENT_TYPES[accepted.media_type]],
        encode_document(value, accepted.media_type, pretty=accepted.pretty),
    )
