"""A document handed over from a server to the one in front of it: in parts, one to a line, as they are made.

Neither side has the whole of it as objects at any time: a part is read before the next one is asked for, and the sender waits for
the reader. Clients never see this form; to a server that does not know it the media type is JSON, and the answer one part.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Final

import orjson

from tetrapod.generic.openapi.pieces import Turns
from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.request import Response, StreamResponse, StreamWriter
from tetrapod.machinery.gvk import Object

MEDIA_TYPE: Final = "application/json;stream=parts"
_MEMBERS: Final = 16
"""Paths or schemas of one line: a core group has hundreds, and reading a line must not hold others up."""


async def hand_over(source: DocumentSource, name: str) -> Response:
    parts = aiter(source.parts(name))
    first = await anext(parts, None)
    if first is None:
        return Response(404, [])

    async def write(writer: StreamWriter) -> None:
        turns = Turns()
        part: Object | None = first
        while part is not None:
            for line in _lines(part):
                writer.write(line)
                await writer.drain()
                await turns.others()
            part = await anext(parts, None)

    return StreamResponse(200, [(b"content-type", MEDIA_TYPE.encode())], write)


def _lines(part: Object) -> Iterator[bytes]:
    components = part.get("components", {})
    paths, schemas = iter(part.get("paths", {}).items()), iter(components.get("schemas", {}).items())
    first = True
    while True:
        found, defined = dict(islice(paths, _MEMBERS)), dict(islice(schemas, _MEMBERS))
        if not (first or found or defined):
            return
        line = {**part, "paths": found}
        if "schemas" in components:
            line["components"] = {**components, "schemas": defined}
        yield orjson.dumps(line) + b"\n"
        first = False


async def taken_over(chunks: AsyncIterator[bytes]) -> AsyncIterator[Object]:
    """The parts, from an answer as it comes."""
    waiting = bytearray()
    async for chunk in chunks:
        searched = len(waiting)
        waiting += chunk
        while (end := waiting.find(b"\n", searched)) >= 0:
            yield orjson.loads(waiting[:end])
            del waiting[: end + 1]
            searched = 0
    if waiting:
        yield orjson.loads(waiting)
