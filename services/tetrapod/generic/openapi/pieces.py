"""Documents too large to be one object: what is written of them is kept, in JSON or as protocol buffers, and put together in the end.

What a member of a document is written as stays one `bytes` from then on until it is sent: at no time is a document there twice.
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
    """A schema as it is written but for its kinds, of which more may become known."""

    schema: bytes
    kinds: list[Object] | None


class Form(Protocol):
    """How a Swagger document is written."""

    def path(self, path: str, item: Object) -> bytes: ...
    def schema(self, schema: Object) -> bytes: ...
    def document(self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object) -> Iterator[bytes]:
        """All of it; takes `paths` and `definitions` apart."""
        ...


class FormV3(Protocol):
    """How an OpenAPI v3 document is written."""

    def path(self, item: Object) -> bytes: ...
    def schema(self, schema: Object) -> bytes: ...
    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
        """All of it, `head` being the document but for these paths and schemas; takes them apart."""
        ...


class JsonForm:
    def path(self, path: str, item: Object) -> bytes:
        return _exact(orjson.dumps(item))

    def schema(self, schema: Object) -> bytes:
        """Without its last brace: kinds may follow."""
        return orjson.dumps(schema)[:-1]

    def document(self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object) -> Iterator[bytes]:
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


def _exact(written: bytes) -> bytes:
    """The same bytes in as much memory as they need: orjson's own have half of theirs left over (measured: a document took twice its
    size, now 1.1 times)."""
    return bytes(memoryview(written))


class JsonFormV3:
    def path(self, item: Object) -> bytes:
        return _exact(orjson.dumps(item))

    def schema(self, schema: Object) -> bytes:
        return _exact(orjson.dumps(schema))

    def document(self, head: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
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
    """A JSON object with these members, sorted, each as it is written."""
    separator = b"{"
    for name in sorted(names):
        yield b"%b%b:" % (separator, orjson.dumps(name))
        yield value_of(name)
        separator = b","
    yield b"}" if separator == b"," else b"{}"


async def written_v3(source: DocumentSource, name: str, form: FormV3) -> Iterator[bytes] | None:
    """An OpenAPI v3 document; None where there is none of that name."""
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
    """Lets others run, every few milliseconds of a long work."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def others(self) -> None:
        if time.monotonic() - self._since > _TURN:
            await asyncio.sleep(0)
            self._since = time.monotonic()


async def gathered(pieces: Iterable[bytes]) -> list[bytes]:
    """The same bytes: small pieces that follow each other are joined, the others stay what they are."""
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


def sendable(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes again, joined to what is worth a write."""
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
