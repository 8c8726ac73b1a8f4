"""Assemble complete OpenAPI documents from their parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tetrapod.generic.openapi.source import DocumentSource


async def document_of(source: DocumentSource, name: str) -> Any:
    """Return a complete document of a source, or None if the source has no document of that name."""
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


class BufferWriter:
    """A StreamWriter that stores the written data in `parts`."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def buffered(self) -> int:
        return 0

    async def drain(self) -> None: ...

    async def wait_closed(self) -> None: ...
