"""Heads of requests as Go's net/http treats them.

The headers that determine how a request is framed are validated. Heads that llhttp rejects and Go's server accepts are
rewritten and parsed again.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.generic.http.error_responses import bad_request, expectation_failed
from tetrapod.generic.http.http1_exchange import Http1Exchange
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.http.request_target import escape_beyond_ascii, valid_host

_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ")


def validate_headers(exchange: Http1Exchange, date: bytes) -> bytes | None:
    """Set `length` and `expects_continue` of an exchange from the headers of its request.

    Args:
        exchange: an exchange whose request has all headers.
        date: the current Date header line.

    Returns:
        The bytes of the response that rejects the request, or None if the headers are valid.
    """
    hosts = codings = 0
    expects_continue = False
    for name, value in exchange.request.headers:
        if name == b"host":
            hosts += 1
            if not valid_host(value):
                return bad_request(400, "Bad Request", "malformed Host header")
        elif name == b"content-length":
            exchange.length = int(value)
        elif name == b"transfer-encoding" and not exchange.http10:
            codings += 1
            if codings > 1 or value.lower() != b"chunked":
                return bad_request(501, "Not Implemented", text="Unsupported transfer encoding")
        elif name == b"expect" and value:
            if b"100-continue" not in value.lower():
                return expectation_failed(date)
            expects_continue = not exchange.http10
    # Without a body, the handler has nothing to read.
    exchange.expects_continue = expects_continue and (codings > 0 or exchange.length > 0)
    if exchange.request.http_version not in ("1.0", "1.1"):
        return bad_request(505, "HTTP Version Not Supported", "unsupported protocol version")
    if hosts != 1 and not (hosts == 0 and exchange.http10):
        return bad_request(400, "Bad Request", "" if hosts else "missing required Host header")
    return None


def framing_lines(headers: HeaderList) -> bytes | None:
    """Return the header lines of Transfer-Encoding and Content-Length, each with its CRLF.

    A Content-Length of 0 is left out. The result is None if no line remains, so that the request has no body.
    """
    lines = [
        name + b": " + value + b"\r\n"
        for name, value in headers
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 "))
    ]
    return b"".join(lines) if lines else None


def replace_method(data: bytes) -> tuple[str, bytes] | None:
    """Return the method of a request, and the request with the method GET instead.

    llhttp has a fixed list of methods. Go accepts any token, and the handlers of upstream reject unknown ones by their
    own rules.

    Returns:
        None if the method is not a token.
    """
    match = _METHOD.match(data)
    return None if match is None else (match[1].decode(), b"GET" + data[match.end(1) :])


def escape_target(data: bytes) -> bytes | None:
    """Return the request with the bytes beyond ASCII of its first line percent-encoded: llhttp accepts only ASCII.

    Returns:
        None if the first line is ASCII or not complete.
    """
    line, newline, rest = data.partition(b"\n")
    return None if line.isascii() or not newline else escape_beyond_ascii(line) + newline + rest
