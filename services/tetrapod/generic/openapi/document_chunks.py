"""Encoding of documents that are too large to be one object, in JSON or protocol buffers.

Each path and schema is encoded on its own, and the document is the sequence of the encoded pieces. A piece is never
copied until it is sent, so a document is never in memory twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import orjson

from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.machinery.gvk import Object

KINDS: Final = "x-kubernetes-group-version-kind"
PIECE: Final = 128 * 1024
_SMALL: Final = 1024
_TURN: Final = 0.005


@dataclass(slots=True)
class Definition:
    """An encoded schema without its kinds (`x-kubernetes-group-version-kind`), to which later documents may add."""

    schema: bytes
    kinds: list[Object] | None


class Form(Protocol):
    """An encoding of Swagger documents."""

    def path(self, path: str, item: Object) -> bytes:
        """Encode a path item."""
        ...

    def schema(self, schema: Object) -> bytes:
        """Encode a schema without its kinds."""
        ...

    def document(
        self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object
    ) -> Iterator[bytes]:
        """Yield the pieces of the document.

        Args:
            head: the members before the paths.
            paths: the encoded path items by path; removed when yielded.
            definitions: the encoded schemas by name; removed when yielded.
            tail: the members after the definitions.
        """
        ...


class FormV3(Protocol):
    """An encoding of OpenAPI v3 documents."""

    def path(self, item: Object) -> bytes:
        """Encode a path item."""
        ...

    def schema(self, schema: Object) -> bytes:
        """Encode a schema."""
        ...

    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
        """Yield the pieces of the document.

        Args:
            head: the document without paths and schemas.
            paths: the encoded path items by path; removed when yielded.
            schemas: the encoded schemas by name; removed when yielded.
        """
        ...


class JsonForm:
    """The encoding of Swagger documents in JSON; implements `Form`."""

    def path(self, path: str, item: Object) -> bytes:
        """Encode a path item."""
        return _exact(orjson.dumps(item))

    def schema(self, schema: Object) -> bytes:
        """Encode a schema without its last brace, because `document` appends the kinds."""
        return orjson.dumps(schema)[:-1]

    def document(
        self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object
    ) -> Iterator[bytes]:
        """Yield the pieces of the document. Removes the entries of `paths` and `definitions`."""
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
    """Copy bytes of orjson, whose buffers are twice as large as needed.

    Measured: a document took twice its size, now 1.1 times.
    """
    return bytes(memoryview(encoded))


class JsonFormV3:
    """The encoding of OpenAPI v3 documents in JSON; implements `FormV3`."""

    def path(self, item: Object) -> bytes:
        """Encode a path item."""
        return _exact(orjson.dumps(item))

    def schema(self, schema: Object) -> bytes:
        """Encode a schema."""
        return _exact(orjson.dumps(schema))

    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
        """Yield the pieces of the document. Removes the entries of `paths` and `schemas`."""
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
    """Yield the pieces of a JSON object.

    Args:
        names: the names of the members, which are sorted.
        value_of: returns the encoded value of a member.
    """
    separator = b"{"
    for name in sorted(names):
        yield b"%b%b:" % (separator, orjson.dumps(name))
        yield value_of(name)
        separator = b","
    yield b"}" if separator == b"," else b"{}"


async def encode_v3(source: DocumentSource, name: str, form: FormV3) -> Iterator[bytes] | None:
    """Return the pieces of an OpenAPI v3 document, or None if it does not exist."""
    head: Object | None = None
    paths: dict[str, bytes] = {}
    schemas: dict[str, bytes] = {}
    turns = Turns()
    async for part in source.parts(name):
        part_paths, part["paths"] = part.get("paths") or {}, {}
        part_schemas = (part.get("components") or {}).pop("schemas", {})
        head = head or part
        for path, item in part_paths.items():
            if path not in paths:
                paths[path] = form.path(item)
                await turns.others()
        for key, schema in part_schemas.items():
            if key not in schemas:
                schemas[key] = form.schema(schema)
                await turns.others()
    return None if head is None else form.document(head, paths, schemas)


class Turns:
    """Yields to the event loop every few milliseconds of a long computation."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def others(self) -> None:
        """Let other tasks run if the last time was more than 5 ms ago."""
        if time.monotonic() - self._since > _TURN:
            await asyncio.sleep(0)
            self._since = time.monotonic()


async def join_small(pieces: Iterable[bytes]) -> list[bytes]:
    """Return the pieces, with adjacent small pieces joined."""
    joined: list[bytes] = []
    turns = Turns()
    small = bytearray()
    for piece in pieces:
        if len(piece) < _SMALL:
            small += piece
        else:
            if small:
                joined.append(bytes(small))
                small.clear()
            joined.append(piece)
        await turns.others()
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
