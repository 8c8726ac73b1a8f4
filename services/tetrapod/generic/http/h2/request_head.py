"""Validation of the header list of a request, so that no request means something else to an HTTP/1.1 server.

A malformed request resets its stream (RFC 9113, 8.1.1). A request that is well-formed HTTP/2 and that the HTTP/1.1
server would reject is answered in the same way as there.

Upstream: readMetaFrame, newWriterAndRequest and checkValidHTTP2RequestHeaders in golang.org/x/net/http2. Go answers
connection-specific headers with 400; RFC 9113 and h2spec require a reset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.http.error_responses import status_response
from tetrapod.generic.http.h2.response_headers import CONNECTION_SPECIFIC
from tetrapod.generic.http.headers import TEXT_TYPE
from tetrapod.generic.http.known_heads import LARGEST, Head
from tetrapod.generic.http.limits import MAX_PATH, excess
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.http.request_target import escape_beyond_ascii, parse_target, valid_host
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.status import StatusError

_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_METHOD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_BAD_TARGET: Final = re.compile(rb"[\x00-\x20\x7f]")
_PSEUDO: Final = frozenset({b":method", b":scheme", b":authority", b":path"})
_SPACES: Final = b" \t"


class MalformedRequest(Exception):
    """A header list that violates the rules of HTTP/2 for requests. The stream is reset with PROTOCOL_ERROR."""


@dataclass(slots=True)
class RequestHead:
    """A request without its body.

    Attributes:
        request: the request with its method, target and headers. The target is empty if it is malformed.
        length: the value of Content-Length in bytes; -1 if the header is missing.
        expects_continue: whether the client waits for `100 Continue` before it sends the body.
        rejection: the response to send without calling a handler; None for a request that a handler gets.
    """

    request: Request
    length: int = -1
    expects_continue: bool = False
    rejection: Response | None = None


def parse_request(fields: HeaderList, *, has_body: bool) -> RequestHead:
    """Return the request with these fields. Its headers have the form that they have in HTTP/1.1.

    A body without a Content-Length gets the header `Transfer-Encoding: chunked`, by which handlers know of it.

    Args:
        fields: the decoded header list.
        has_body: whether the request goes on after its headers.

    Raises:
        MalformedRequest: the fields violate the rules of HTTP/2, so that the stream must be reset.
    """
    pseudo: dict[bytes, bytes] = {}
    headers: HeaderList = []
    for name, value in fields:
        if name[:1] == b":":
            if headers or name not in _PSEUDO or name in pseudo or _BAD_VALUE.search(value):
                raise MalformedRequest
            pseudo[name] = value
        else:
            headers.append(_header(name, value))
    head = RequestHead(_request(pseudo))
    head.request.headers = _framed(head, headers, pseudo.get(b":authority"))
    if has_body and head.length < 0:
        head.request.headers.append((b"transfer-encoding", b"chunked"))
    elif not has_body and head.length > 0:
        raise MalformedRequest
    path = pseudo.get(b":path", b"")
    if (beyond := excess(path, head.request.headers)) is not None:
        head.rejection = status_response(StatusError(beyond[0], "", beyond[1]))
    _set_target(head, path)
    return head


class LastHeaders:
    """The headers of a connection's last request without a body. Most clients send the same ones again and again.

    Such requests share them, and the results that filters compute from them (known_heads.py).
    """

    __slots__ = ("_authority", "_fields", "_head")

    def __init__(self) -> None:
        self._head: Head | None = None
        self._fields: HeaderList = []
        self._authority: bytes | None = None

    def parse(self, fields: HeaderList, *, has_body: bool) -> RequestHead:
        """Return the result of `parse_request` with the same arguments, and raise its exceptions."""
        if not has_body and (head := self._repeated(fields)) is not None:
            return head
        head = parse_request(fields, has_body=has_body)
        if not has_body and head.length < 0 and not head.expects_continue and head.rejection is None:
            self._keep(fields, head.request)
        return head

    def _repeated(self, fields: HeaderList) -> RequestHead | None:
        """Return the request with these fields if its headers are the last ones, else None."""
        count = len(fields) - len(self._fields)
        if self._head is None or count < 0 or fields[count:] != self._fields:
            return None
        pseudo = dict(fields[:count])
        path = pseudo.get(b":path", b"")
        if len(pseudo) != count or not pseudo.keys() <= _PSEUDO or len(path) > MAX_PATH:
            return None
        if pseudo.get(b":authority") != self._authority or any(map(_BAD_VALUE.search, pseudo.values())):
            return None
        head = RequestHead(_request(pseudo))
        head.request.head, head.request.headers = self._head, self._head.headers
        _set_target(head, path)
        return head

    def _keep(self, fields: HeaderList, request: Request) -> None:
        start = next((index for index, (name, _) in enumerate(fields) if name[:1] != b":"), len(fields))
        size = sum(len(name) + len(value) for name, value in request.headers)
        if size <= LARGEST and all(name != b"audit-id" for name, _ in request.headers):
            self._head, self._fields = Head(request.headers), fields[start:]
            self._authority = dict(fields[:start]).get(b":authority")


def parse_trailers(fields: HeaderList) -> None:
    """Validate trailers, which are then ignored, as in HTTP/1.1.

    Raises:
        MalformedRequest: the trailers violate the rules of HTTP/2, so that the stream must be reset.
    """
    for name, value in fields:
        _header(name, value)


def _header(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return a header with the spaces around its value removed.

    Raises:
        MalformedRequest: HTTP/2 forbids the name or the value.
    """
    if not _permitted_name(name) or _BAD_VALUE.search(value) or (name == b"te" and value.strip(_SPACES) != b"trailers"):
        raise MalformedRequest
    return name, value.strip(_SPACES)


@bounded(count=1024, size=256 << 10, largest=512)
def _permitted_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None and name not in CONNECTION_SPECIFIC


def _request(pseudo: dict[bytes, bytes]) -> Request:
    method, path = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if not _METHOD.fullmatch(method):
        raise MalformedRequest
    if method == b"CONNECT":
        if b":path" in pseudo or b":scheme" in pseudo or not pseudo.get(b":authority"):
            raise MalformedRequest
    elif not path or pseudo.get(b":scheme") not in (b"https", b"http"):
        raise MalformedRequest
    request = Request(method.decode("ascii"), "")
    request.http_version = "2.0"
    return request


def _framed(head: RequestHead, headers: HeaderList, authority: bytes | None) -> HeaderList:
    """Return the headers of a request with one Host header in front and one Cookie header.

    Set the fields of `head` that follow from Content-Length, Expect and Host.

    Args:
        head: the request, whose `length`, `expects_continue` and `rejection` are set.
        headers: the headers of the request without the pseudo-headers.
        authority: the value of `:authority`; None if it is missing.

    Raises:
        MalformedRequest: Content-Length is malformed, or given with different values.
    """
    host = authority
    framed: HeaderList = []
    cookies: list[bytes] = []
    for name, value in headers:
        if name == b"host":
            if host is not None and host.lower() != value.lower():
                head.rejection = _bad_request("Host and :authority differ")
            host = value if host is None else host
            continue
        if name == b"cookie":
            cookies.append(value)
            continue
        if name == b"content-length":
            if not value.isdigit() or len(value) > 18 or head.length not in (-1, int(value)):
                raise MalformedRequest
            if head.length >= 0:
                continue
            head.length = int(value)
        elif name == b"expect" and value:
            head.expects_continue = b"100-continue" in value.lower()
            if not head.expects_continue:
                head.rejection = Response(417, [])
        framed.append((name, value))
    if cookies:
        framed.append((b"cookie", b"; ".join(cookies)))
    if host is None:
        head.rejection = _bad_request("missing required Host header")
    elif not valid_host(host):
        head.rejection = _bad_request("malformed Host header")
    else:
        framed.insert(0, (b"host", host))
    return framed


def _set_target(head: RequestHead, path: bytes) -> None:
    """Set the path and the query of a request from the value of `:path`, or set `rejection` if it is malformed."""
    if _BAD_TARGET.search(path) or not (path.startswith(b"/") or path == b"*"):
        target = None
    else:
        target = parse_target(escape_beyond_ascii(path))
    if target is None:
        head.rejection = head.rejection or _bad_request("")
        return
    head.request.path, head.request.raw_path, head.request.query_string = target


def _bad_request(detail: str) -> Response:
    body = f"400 Bad Request: {detail}".removesuffix(": ").encode()
    return Response(400, [TEXT_TYPE], body)
