"""What the front answers by itself: Status objects for raised `StatusError`, the text of a panic, and bad requests.

Upstream: ErrorNegotiated in k8s.io/apiserver/pkg/endpoints/handlers/responsewriters, WithPanicRecovery in server/filters/wrap.go.
"""

from __future__ import annotations

import json
from typing import Final

import orjson

from tetrapod.generic.request import HeaderList, Response
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

NO_CACHE: Final = (b"cache-control", b"no-cache, private")
JSON: Final = (b"content-type", b"application/json")
TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
NOSNIFF: Final = (b"x-content-type-options", b"nosniff")

PANIC_TEXT: Final = b"This request caused apiserver to panic. Look in the logs for details.\n"


def status_response(error: StatusError) -> Response:
    """A refusal as JSON, for whoever stands outermost."""
    headers: HeaderList = [NO_CACHE, JSON, *error.headers]
    if error.retry_after and not any(name == b"retry-after" for name, _ in error.headers):
        headers.append((b"retry-after", str(error.retry_after).encode()))
    return Response(error.code, headers, encode_status(error.to_status()))


def encode_status(status: Object) -> bytes:
    """JSON with a final newline, as upstream's serializer writes; stray bytes of the path become U+FFFD."""
    try:
        return orjson.dumps(status, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # lone surrogates
        return (
            json.dumps(status, ensure_ascii=False, separators=(",", ":"))
            .encode("utf-8", "surrogateescape")
            .decode("utf-8", "replace")
            .encode()
            + b"\n"
        )


def text_response(status: int, text: bytes) -> Response:
    """As Go's http.Error."""
    return Response(status, [NO_CACHE, TEXT, NOSNIFF], text)


def panic_response() -> Response:
    return text_response(500, PANIC_TEXT)


def bad_request(code: int, phrase: str, detail: str = "", text: str | None = None) -> bytes:
    """What Go's server writes for a request that it cannot parse, before it closes the connection; `text` is the body where it is of
    another form."""
    if text is None:
        text = f"{code} {phrase}: {detail}" if detail else f"{code} {phrase}"
    return f"HTTP/1.1 {code} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{text}".encode()


def expectation_failed(date: bytes) -> bytes:
    """Unlike them this comes from Go's handling of a request that it could read, with the headers of an answer."""
    return b"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\n" + date + b"Content-Length: 0\r\n\r\n"
