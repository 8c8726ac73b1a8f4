"""Encoding of large documents in JSON or protocol buffers, as a sequence of pieces of bytes.

Each path and schema is encoded on its own, because a document of Python objects would be too large. A piece is never
copied until it is sent, so a document is never in memory twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import orjson

from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.machinery.gvk import Object

KINDS: Final = "x-kubernetes-group-version-kind"
PIECE: Final = 128 * 1024
_SMALL: Final = 1024


@dataclass(slots=True)
class Definition:
    """A schema of a Swagger document, whose kinds are separate because later documents may add some.

    Attributes:
        schema: the schema, encoded by `Form.schema`.
        kinds: its `x-kubernetes-group-version-kind`; None if it has none.
    """

    schema: bytes
    kinds: list[Object] | None


class Form(Protocol):
    """The interface of encoders of Swagger documents. `JsonForm` and `ProtobufForm` implement it.

    The caller encodes each path item and schema on its own, and then joins them with `document`.
    """

    def path(self, path: str, item: Object) -> bytes:
        """Return the encoded path item of a path, for the argument `paths` of `document`."""
        ...

    def schema(self, schema: Object) -> bytes:
        """Return an encoded schema, for a `Definition`. It must not contain `x-kubernetes-group-version-kind`."""
        ...

    def document(
        self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object
    ) -> Iterator[bytes]:
        """Yield the pieces of the document.

        Args:
            head: the members of the document before `paths`, not yet encoded; at least one.
            paths: the encoded path items (results of `path`) by API path. Each is removed from the dictionary when it
                is yielded, to save memory.
            definitions: the encoded definitions by name. They are removed from the dictionary.
            tail: the members after `definitions`, not yet encoded; at least one.
        """
        ...


class FormV3(Protocol):
    """The interface of encoders of OpenAPI v3 documents, in JSON (`JsonFormV3`) or protocol buffers.

    The caller encodes each path item and schema on its own, and then joins them with `document`.
    """

    def path(self, item: Object) -> bytes:
        """Return a path item in the encoder's format, without its API path, for the argument `paths` of `document`."""
        ...

    def schema(self, schema: Object) -> bytes:
        """Return the schema in the encoder's format, without its name, for the argument `schemas` of `document`."""
        ...

    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
        """Yield the pieces of the document.

        Args:
            head: the document, not yet encoded, with empty `paths`, and `components` without schemas.
            paths: the encoded path items (results of `path`) by API path. Each is removed from the dictionary when it
                is yielded, to save memory.
            schemas: the encoded schemas (results of `schema`) by name. They are removed from the dictionary.
        """
        ...


class JsonForm:
    """The encoder of Swagger documents in JSON; implements `Form`."""

    def path(self, path: str, item: Object) -> bytes:
        """Return the path item as JSON. The path is not used."""
        return _exact(orjson.dumps(item))

    def schema(self, schema: Object) -> bytes:
        """Return the schema as JSON without its last brace, because `document` appends the kinds."""
        return orjson.dumps(schema)[:-1]

    def document(
        self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object
    ) -> Iterator[bytes]:
        """Implement `Form.document`: yield the pieces of one JSON object, with paths and definitions sorted by name.

        Args:
            head: the members of the object before `paths`; at least one.
            paths: the encoded path items (results of `path`) by API path. Each is removed when it is yielded.
            definitions: the results of `schema` with the kinds, by name. Each is removed when it is yielded.
            tail: the members after `definitions`; at least one.
        """
        yield orjson.dumps(head)[:-1] + b',"paths":'
        yield from members(paths, paths.pop)
        yield b',"definitions":'
        separator = b"{"
        for name in sorted(definitions):
            definition = definitions.pop(name)
            yield b"%b%b:" % (separator, orjson.dumps(name))
            yield definition.schema
            yield _kinds(definition)
            separator = b","
        yield b"}," if separator == b"," else b"{},"
        yield orjson.dumps(tail)[1:]


def _kinds(definition: Definition) -> bytes:
    if definition.kinds is None:
        return b"}"
    comma = b"" if definition.schema == b"{" else b","
    return b'%b"%b":%b}' % (comma, KINDS.encode(), orjson.dumps(definition.kinds))


def _exact(encoded: bytes) -> bytes:
    """Return a copy of `encoded` that takes no more memory than its bytes.

    orjson's results keep buffers of twice the needed size. Measured: a document took twice its size, now 1.1 times.
    """
    return bytes(memoryview(encoded))


class JsonFormV3:
    """The encoder of OpenAPI v3 documents in JSON; implements `FormV3`."""

    def path(self, item: Object) -> bytes:
        """Return the path item as JSON."""
        return _exact(orjson.dumps(item))

    def schema(self, schema: Object) -> bytes:
        """Return the schema as JSON."""
        return _exact(orjson.dumps(schema))

    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
        """Implement `FormV3.document`: yield the pieces of one JSON object, with paths and schemas sorted by name.

        Args:
            head: the document, in the order of its members. Its `paths` and `components.schemas` are replaced by those
                of the next arguments.
            paths: the encoded path items (results of `path`) by API path. Each is removed when it is yielded.
            schemas: the encoded schemas (results of `schema`) by name. Each is removed when it is yielded.
        """
        separator = b"{"
        for key, value in head.items():
            yield b'%b"%b":' % (separator, key.encode())
            if key == "paths":
                yield from members(paths, paths.pop)
            elif key == "components" and schemas:
                yield b'{"schemas":'
                yield from members(schemas, schemas.pop)
                yield b"".join(b',"%b":%b' % (name.encode(), orjson.dumps(part)) for name, part in value.items()) + b"}"
            else:
                yield orjson.dumps(value)
            separator = b","
        yield b"}"


def members(names: Iterable[str], value_of: Callable[[str], bytes]) -> Iterator[bytes]:
    """Yield the pieces of a JSON object with its members sorted by name.

    Args:
        names: the names of the members, in any order.
        value_of: returns the encoded value of a member.
    """
    separator = b"{"
    for name in sorted(names):
        yield b"%b%b:" % (separator, orjson.dumps(name))
        yield value_of(name)
        separator = b","
    yield b"}" if separator == b"," else b"{}"


async def encode_v3(source: DocumentSource, name: str, form: FormV3) -> Iterator[bytes] | None:
    """Return the pieces of the OpenAPI v3 document with this name, encoded by `form`, or None if it does not exist.

    If several parts have a path or schema, the first one is used.
    """
    head: Object | None = None
    paths: dict[str, bytes] = {}
    schemas: dict[str, bytes] = {}
    yield_timer = YieldTimer()
    async for part in source.parts(name):
        part_paths, part["paths"] = part.get("paths") or {}, {}
        part_schemas = (part.get("components") or {}).pop("schemas", {})
        head = head or part
        for path, item in part_paths.items():
            if path not in paths:
                paths[path] = form.path(item)
                await yield_timer.yield_if_due()
        for key, schema in part_schemas.items():
            if key not in schemas:
                schemas[key] = form.schema(schema)
                await yield_timer.yield_if_due()
    return None if head is None else form.document(head, paths, schemas)


async def join_small(pieces: Iterable[bytes]) -> list[bytes]:
    """Return the pieces as a list with at least one element. Adjacent pieces of less than 1 KiB are joined."""
    joined: list[bytes] = []
    yield_timer = YieldTimer()
    small = bytearray()
    for piece in pieces:
        if len(piece) < _SMALL:
            small += piece
        else:
            if small:
                joined.append(bytes(small))
                small.clear()
            joined.append(piece)
        await yield_timer.yield_if_due()
    if small or not joined:
        joined.append(bytes(small))
    return joined


def join_to_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces joined to chunks of at least `PIECE` bytes, except for the last one."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)
