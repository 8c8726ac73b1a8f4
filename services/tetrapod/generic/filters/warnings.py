"""Writes `request.warnings` as `Warning: 299 - "…"` headers (upstream: endpoints/filters/warning.go).

Each text once, in order. When all together exceed 4,096 characters every one is cut to 256, and those beyond are dropped.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.request import Handler, HeaderList, Request, Response
from tetrapod.machinery.status import StatusError

TOTAL_LIMIT: Final = 4 * 1024
ITEM_LIMIT: Final = 256


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
    distinct = list(dict.fromkeys(text for text in texts if text))
    values = [_header_value(text) for text in distinct]
    if sum(map(len, values)) > TOTAL_LIMIT:
        values = _within_limits(distinct)
    return [(b"warning", value.encode("utf-8")) for value in values]


def _within_limits(texts: list[str]) -> list[str]:
    kept: list[str] = []
    total = 0
    for text in texts:
        value = _header_value(text[:ITEM_LIMIT])
        if total + len(value) > TOTAL_LIMIT:
            break
        kept.append(value)
        total += len(value)
    return kept


def _header_value(text: str) -> str:
    """Quote as net.NewWarningHeader: control characters are dropped, quotes and backslashes escaped."""
    clean = "".join(c if c.isprintable() else "" for c in text)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
