"""Responses that the HTTP server creates itself: for a raised `StatusError`, panics and bad requests.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters, ErrorNegotiated; server/filters/wrap.go,
WithPanicRecovery
"""

from __future__ import annotations

import json
from typing import Final

import orjson

from tetrapod.generic.http.headers import JSON_TYPE, NO_CACHE, NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Response
from tetrapod.generic.http.response_head import STATUS_LINES
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

PANIC_TEXT: Final = b"This request caused apiserver to panic. Look in the logs for details.\n"


def status_response(error: StatusError) -> Response:
    """Return a JSON response with the Status of `error`, for errors that no filter has converted."""
    headers: HeaderList = [NO_CACHE, JSON_TYPE, *error.headers]
    if error.retry_after and not any(name == b"retry-after" for name, _ in error.headers):
        headers.append((b"retry-after", str(error.retry_after).encode()))
    return Response(error.code, headers, encode_status(error.to_status()))


def encode_status(status: Object) -> bytes:
    """Return a Status as JSON with a final newline, as upstream's serializer does.

    Surrogates, which replace invalid UTF-8 in a decoded path, become U+FFFD.
    """
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
    """Return a plain-text response that must not be cached."""
    return Response(status, [NO_CACHE, TEXT_TYPE, NOSNIFF], text)


def http_error(status: int, text: str) -> Response:
    """Return a plain-text response with a final newline, as Go's http.Error writes it."""
    return Response(status, [TEXT_TYPE, NOSNIFF], f"{text}\n".encode())


def not_found() -> Response:
    """Return the plain-text 404 of Go's servers, for a path that is not served."""
    return http_error(404, "404 page not found")


def panic_response() -> Response:
    """Return the plain-text 500 for a request whose handler raised an unexpected exception."""
    return text_response(500, PANIC_TEXT)


def bad_request(code: int, phrase: str, detail: str = "", text: str | None = None) -> bytes:
    """Return the response that Go's server writes to a client whose request it cannot parse, as bytes.

    The caller closes the connection.

    Args:
        code: the status code.
        phrase: the text of the status line.
        detail: the end of the usual body `CODE PHRASE: DETAIL`; "" to omit it.
        text: another body; None for the usual one.
    """
    if text is None:
        text = f"{code} {phrase}: {detail}" if detail else f"{code} {phrase}"
    return (
        f"HTTP/1.1 {code} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{text}"
    ).encode()


def too_large(code: int, message: str) -> bytes:
    """Return the bytes of a response with a Status, for a request whose head is too large.

    It has `Connection: close`; the caller closes the connection.

    Args:
        code: the status code, 414 or 431.
        message: the message of the Status.
    """
    body = encode_status(StatusError(code, "", message).to_status())
    head = STATUS_LINES[
        code
    ] + b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head + body


def expectation_failed(date: bytes) -> bytes:
    """Return the bytes of the 417 response to an unsupported Expect header. `date` is the Date header line.

    Unlike for `bad_request`, Go has parsed the request, so it sends ordinary headers.
    """
    return b"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\n" + date + b"Content-Length: 0\r\n\r\n"
