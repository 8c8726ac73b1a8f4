"""Writes `request.warnings` as `Warning: 299 - "…"` headers (upstream: endpoints/filters/warning.go).

Each text once, in order. When all together exceed 4,096 characters every one is cut to 256, and those beyond are dropped.
A text with a control character in it is no header, and is not written at all.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from tetrapod.generic.request import Handler, HeaderList, Request, Response
from tetrapod.machinery.status import StatusError

TOTAL_LIMIT: Final = 4 * 1024
ITEM_LIMIT: Final = 256
ENOUGH: Final = TOTAL_LIMIT
"""More texts than this are never shown: who makes them for each pair of things stops there."""


def with_warnings(handler: Handler) -> Handler:
    async def warnings(request: Request) -> Response:
        try:
            response = await handler(request)
        except StatusError as error:
            error.headers.extend(warning_headers(request.warnings))
            raise
        if request.warnings:
            response.headers.extend(warning_headers(request.warnings))
        return response

    return warnings


def warning_headers(texts: list[str]) -> HeaderList:
    """Those that can be no header (control characters) are left out."""
    distinct = list(dict.fromkeys(text for text in texts if text))
    total = 0
    for index, text in enumerate(distinct):
        total += len(text) if _writable(text) else 0
        if total > TOTAL_LIMIT:  # what was seen until now is all written again
            return _cut(distinct[: index + 1], distinct[index + 1 :])
    return [_header(text) for text in distinct if _writable(text)]


def _cut(again: list[str], later: list[str]) -> HeaderList:
    headers: HeaderList = []
    total = 0
    for place, text in enumerate(again + later):
        if place >= len(again) and total >= TOTAL_LIMIT:
            break
        if _writable(short := text[:ITEM_LIMIT]):
            headers.append(_header(short))
            total += len(short)
    return headers


def _writable(text: str) -> bool:
    return not any(unicodedata.category(character) == "Cc" for character in text)


def _header(text: str) -> tuple[bytes, bytes]:
    """Quoted as net.NewWarningHeader does."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return b"warning", f'299 - "{escaped}"'.encode()
