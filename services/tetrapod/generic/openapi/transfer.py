"""Transfer of an OpenAPI document from a service to the aggregator in parts, one per line.

Neither side holds the whole document as objects: the receiver processes a part before it reads the next one, and the
sender waits for it. Clients never see this form. A server that does not know it treats the media type as JSON, and the
response as a single part.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Final

import orjson

from tetrapod.generic.http.request import Response, StreamResponse, StreamWriter
from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.machinery.gvk import Object

MEDIA_TYPE: Final = "application/json;stream=parts"
_MEMBERS: Final = 16
"""The number of paths or schemas of a line. A core group has hundreds, and parsing a line must not block the event loop
for long.
"""


async def hand_over(source: DocumentSource, name: str) -> Response:
    """Return a response with the parts of the document of this name, one per line, or a 404 if it does not exist."""
    parts = aiter(source.parts(name))
    first = await anext(parts, None)
    if first is None:
        return Response(404, [])

    async def write(writer: StreamWriter) -> None:
        yield_timer = YieldTimer()
        part: Object | None = first
        while part is not None:
            for line in _lines(part):
                writer.write(line)
                await writer.drain()
                await yield_timer.yield_if_due()
            part = await anext(parts, None)

    return StreamResponse(200, [(b"content-type", MEDIA_TYPE.encode())], write)


def _lines(part: Object) -> Iterator[bytes]:
    components = part.get("components", {})
    paths, schemas = iter(part.get("paths", {}).items()), iter(components.get("schemas", {}).items())
    first = True
    while True:
        paths_chunk, schemas_chunk = dict(islice(paths, _MEMBERS)), dict(islice(schemas, _MEMBERS))
        if not (first or paths_chunk or schemas_chunk):
            return
        line = {**part, "paths": paths_chunk}
        if "schemas" in components:
            line["components"] = {**components, "schemas": schemas_chunk}
        yield orjson.dumps(line) + b"\n"
        first = False


async def received_parts(chunks: AsyncIterator[bytes]) -> AsyncIterator[Object]:
    """Yield the parts in a response body, whose chunks may be split anywhere.

    Raises:
        ValueError: a line is not JSON.
    """
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
