"""Error texts for malformed responses, as Go's net/http gives them."""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

_BROKEN: Final = "net/http: HTTP/1.x transport connection broken: "
_VERSION: Final = re.compile(r"HTTP/\d\.\d")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
TOO_LARGE: Final = _BROKEN + "net/http: server response headers exceeded {} bytes; aborted"


TOO_MANY_1XX: Final = _BROKEN + "net/http: too many 1xx informational responses"


def malformed_head(data: bytes, fallback: str) -> str:
    """Return Go's error for received data that is not a valid response head (net/http: ReadResponse, readTransfer).

    Args:
        data: the data that the parser rejected.
        fallback: the end of the text if no specific error is found.
    """
    lines = data[:4096].decode("utf-8", "replace").split("\n")
    first = lines[0].removesuffix("\r")
    protocol, space, status = first.partition(" ")
    if not space:
        return f"{_BROKEN}malformed HTTP response {go_quote(first)}"
    code = status.lstrip(" ").partition(" ")[0]
    if not (len(code) == 3 and code.isascii() and code.isdigit()):
        return f"{_BROKEN}malformed HTTP status code {go_quote(code)}"
    if not _VERSION.fullmatch(protocol):
        return f"{_BROKEN}malformed HTTP version {go_quote(protocol)}"
    lengths = []
    for line in lines[1:]:
        header = line.removesuffix("\r")
        if not header:
            break
        name, colon, value = header.partition(":")
        if not colon:
            return f"{_BROKEN}malformed MIME header: missing colon: {go_quote(header)}"
        if _CONTROL.search(value):
            return f"{_BROKEN}malformed MIME header line: {go_quote(header)}"
        if name.lower() == "content-length":
            lengths.append(value.strip())
    if len(set(lengths)) > 1:
        return (
            f"{_BROKEN}http: message cannot contain multiple Content-Length headers; "
            f"got [{' '.join(map(go_quote, lengths))}]"
        )
    if lengths and not (lengths[0].isascii() and lengths[0].isdigit()):
        return f"{_BROKEN}bad Content-Length {go_quote(lengths[0])}"
    return f"{_BROKEN}{fallback}"


def malformed_status(code: int) -> str:
    """Return the error for a status code below 100 or above 599; "" if the code is valid.

    The HTTP parser accepts codes outside this range. Upstream accepts those from 600 to 999; this server does not.
    """
    return "" if 100 <= code <= 599 else f'{_BROKEN}malformed HTTP status code "{code:03}"'


def unsupported_encoding(value: bytes) -> str:
    """Return the error for a Transfer-Encoding other than chunked; "" for chunked."""
    return (
        ""
        if value.strip().lower() == b"chunked"
        else f"{_BROKEN}unsupported transfer encoding: {go_quote(value.decode('latin-1'))}"
    )


def malformed_body(error: str) -> str:
    """Return Go's error for a body that the parser rejects with the text `error`."""
    return "invalid byte in chunk length" if "chunk size" in error else f"malformed HTTP response: {error}"
