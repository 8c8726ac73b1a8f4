"""Many watches of a large object that changes."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import orjson

from stall.client import Client
from stall.message import MERGE_PATCH, Message
from stall.setup import LARGE_MAPS
from stall.worlds import World

_TABLE: Final = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
_NAME: Final = "watched"
SIZE: Final = 1_000_000
"""Bytes of the object."""
FORMS: Final = {
    "objects": ("", ""),
    "objects with a field selector": (f"&fieldSelector=metadata.name%3D{_NAME}", ""),
    "Tables": ("", _TABLE),
    "Tables with objects": ("&includeObject=Object", _TABLE),
    "metadata": ("", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n"),
}
"""The end of the query and the headers of the watches."""
COMPLETE: Final = ("objects", "objects with a field selector", "Tables with objects")
"""The forms whose events contain the whole object."""
_LIMIT: Final = 4 * SIZE
_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True)
class Watched:
    """The event that each watch got, and the longest step or lag of an event loop during that time, in CPU seconds."""

    events: list[bytes]
    caused: float


async def watched(world: World, form: str, count: int) -> Watched:
    """Open watches of a user in one of `FORMS`, change the object, and read its event from each."""
    user = Client(world.url, str(world.ca), "user-token")
    data = {f"k{number}": "v" * 90 for number in range(SIZE // 100)}
    created = await user.ask("POST", LARGE_MAPS, {"metadata": {"name": _NAME}, "data": data})
    assert created.status in (201, 409), created.body[:500]
    listed = await user.ask("GET", f"{LARGE_MAPS}?labelSelector=none")
    version = orjson.loads(listed.body)["metadata"]["resourceVersion"]
    query, headers = FORMS[form]
    target = f"{LARGE_MAPS}?watch=1&resourceVersion={version}{query}"
    head = f"GET {target} HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer user-token\r\n{headers}\r\n"
    watches: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    try:
        for start in range(0, count, _AT_ONCE):
            part = range(start, min(start + _AT_ONCE, count))
            watches += await asyncio.gather(*(_watch(world, head) for _ in part))
        world.control("reset")
        changed = orjson.dumps({"data": {"changed": form}})
        patch = Message("PATCH", f"{LARGE_MAPS}/{_NAME}", body=changed, media_type=MERGE_PATCH)
        reading = asyncio.gather(*(reader.readline() for reader, _ in watches))
        outcome = await user.send([patch])
        assert outcome.status == 200, outcome.body[:500]
        events = await reading
        measured = world.control("read").values()
    finally:
        for _, writer in watches:
            writer.transport.abort()
    return Watched(events, max(max(values["step"], values["cpu"]) for values in measured))


async def _watch(world: World, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the head of a request by HTTP/1.0, whose response has no chunks, and read the head of the response."""
    address = urlsplit(world.url)
    context = ssl.create_default_context(cafile=str(world.ca))
    context.check_hostname = False
    reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context, limit=_LIMIT)
    writer.write(head.encode())
    assert b" 200 " in (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]
    return reader, writer
