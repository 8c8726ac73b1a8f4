"""Writes `request.warnings` as `Warning: 299 - "…"` headers.

Each distinct text is written once, in order. If they exceed 4,096 characters in total, each is truncated to 256, and
those beyond the limit are dropped. Texts with control characters cannot be headers and are dropped.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.generic.http.request import Handler, HeaderList, Request, Response
from tetrapod.machinery.status import StatusError

TOTAL_LIMIT: Final = 4 * 1024
ITEM_LIMIT: Final = 256
ENOUGH: Final = TOTAL_LIMIT
"""The most texts that can be sent. Validation that compares pairs of values stops after as many warnings."""
_control: Final = re.compile("[\x00-\x1f\x7f-\x9f]").search
"""Finds the characters of Unicode's category Cc, in a fiftieth of the time that looking each one up takes."""


def with_warnings(handler: Handler) -> Handler:
    """Return a handler that adds a Warning header for each of `request.warnings` to the response or the StatusError."""

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
    """Return a Warning header for each distinct text, in order. Texts with control characters are left out.

    If the texts have more than 4,096 characters together, each is truncated to 256 characters, and those beyond the
    limit are left out.
    """
    distinct = list(dict.fromkeys(text for text in texts if text))
    total = 0
    for index, text in enumerate(distinct):
        total += len(text) if _writable(text) else 0
        if total > TOTAL_LIMIT:  # the texts so far are truncated and written again
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
    """Return whether a text has no control characters, which headers cannot contain."""
    return _control(text) is None


def _header(text: str) -> tuple[bytes, bytes]:
    """Return the Warning header of a text, quoted as by net.NewWarningHeader."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return b"warning", f'299 - "{escaped}"'.encode()
