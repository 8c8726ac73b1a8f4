"""Documents too large to be one object: what is written of them is kept, in JSON or as protocol buffers, and joined in the end."""

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


class JsonForm:
    def path(self, path: str, item: Object) -> bytes:
        return orjson.dumps(item)

    def schema(self, schema: Object) -> bytes:
        return orjson.dumps(schema)

    def document(self, head: Object, paths: dict[str, bytes], definitions: dict[str, Definition], tail: Object) -> Iterator[bytes]:
        yield orjson.dumps(head)[:-1] + b',"paths":'
        yield from members(paths, paths.pop)
        yield b',"definitions":'
        yield from members(definitions, lambda name: _with_kinds(definitions.pop(name)))
        yield b"," + orjson.dumps(tail)[1:]


def _with_kinds(definition: Definition) -> bytes:
    if definition.kinds is None:
        return definition.schema
    comma = b"" if definition.schema == b"{}" else b","
    return b'%b%b"%b":%b}' % (definition.schema[:-1], comma, KINDS.encode(), orjson.dumps(definition.kinds))


def members(names: Iterable[str], written: Callable[[str], bytes]) -> Iterator[bytes]:
    """A JSON object with these members, sorted, each as it is written."""
    before = b"{"
    for name in sorted(names):
        yield b"%b%b:%b" % (before, orjson.dumps(name), written(name))
        before = b","
    yield b"}" if before == b"," else b"{}"


async def json_document(source: DocumentSource, name: str) -> Iterator[bytes] | None:
    """An OpenAPI v3 document; None where there is none of that name."""
    first: Object | None = None
    paths: dict[str, bytes] = {}
    schemas: dict[str, bytes] = {}
    turns = Turns()

    async def add(part: Object) -> None:
        for written, found in ((paths, part["paths"]), (schemas, part["components"]["schemas"])):
            for key, value in found.items():
                if key not in written:
                    written[key] = orjson.dumps(value)
                    await turns.others()

    async for part in source.parts(name):
        if first is None:
            first = part
            continue
        if not paths:
            await add(first)
        await add(part)
    if first is None:
        return None
    return _joined(first, paths, schemas) if paths else iter((await asyncio.to_thread(orjson.dumps, first),))


def _joined(first: Object, paths: dict[str, bytes], schemas: dict[str, bytes]) -> Iterator[bytes]:
    yield orjson.dumps({key: value for key, value in first.items() if key not in ("paths", "components")})[:-1] + b',"paths":'
    yield from members(paths, paths.pop)
    yield b',"components":{"schemas":'
    yield from members(schemas, schemas.pop)
    yield b"}}"


class Turns:
    """Lets others run, every few milliseconds of a long work."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def others(self) -> None:
        if time.monotonic() - self._since > _TURN:
            await asyncio.sleep(0)
            self._since = time.monotonic()


async def evened(pieces: Iterable[bytes]) -> list[bytes]:
    """The same bytes in pieces of one size."""
    found: list[bytes] = []
    turns = Turns()
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        while len(waiting) >= PIECE:
            found.append(bytes(waiting[:PIECE]))
            del waiting[:PIECE]
        await turns.others()
    if waiting or not found:
        found.append(bytes(waiting))
    return found
