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
    return [(b"warning", _header_value(text).encode("utf-8")) for text in _within_limits(distinct)]


def _within_limits(texts: list[str]) -> list[str]:
    """Cut ones are counted as the recorder of upstream does: those until the limit is reached, that which passes it included."""
    kept: list[str] = []
    total = 0
    for text in texts:
        total += len(text)
        if total > TOTAL_LIMIT:
            break
        kept.append(text)
    else:
        return kept
    passed = len(kept) + 1  # those that were seen when the limit was passed are all written again
    kept = [text[:ITEM_LIMIT] for text in texts[:passed]]
    total = sum(map(len, kept))
    for text in texts[passed:]:
        if total >= TOTAL_LIMIT:
            break
        kept.append(text[:ITEM_LIMIT])
        total += len(kept[-1])
    return kept


def _header_value(text: str) -> str:
    """Quote as net.NewWarningHeader: control characters are dropped, quotes and backslashes escaped."""
    clean = "".join(c if c.isprintable() else "" for c in text)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
