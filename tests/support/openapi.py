"""OpenAPI documents put together for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tetrapod.generic.openapi.source import DocumentSource


async def document_of(source: DocumentSource, name: str) -> Any:
    """The document of a source whole; None where it has none of that name."""
    return await merged(source.parts(name))


async def merged(parts: AsyncIterator[Any]) -> Any:
    document: Any = None
    async for part in parts:
        if document is None:
            document = part
        else:
            document["paths"].update(part["paths"])
            document["components"]["schemas"].update(part["components"]["schemas"])
    return document


class Kept:
    """A StreamWriter that keeps what is written."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def buffered(self) -> int:
        return 0

    async def drain(self) -> None: ...

    async def wait_closed(self) -> None: ...
