"""`Review`, a review to be sent to a webhook, and the decoding of responses, with the error texts of client-go and Go.

As upstream, a body that does not begin like JSON is decoded as YAML.
Upstream: k8s.io/client-go/rest/request.go, transformResponse; apimachinery's api/errors, NewGenericServerResponse
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.json_pieces import loads
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json, yaml
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.type_meta import recognize, syntax_text
from tetrapod.machinery.types import load

_SCHEME: Final = '"pkg/runtime/scheme.go:111"'
_STATUS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
_TEXT_LIMIT: Final = 2048
_long_number = re.compile(rb"[0-9]{19}").search


SUPPORTED: Final = ("v1", "v1beta1")
"""The supported versions of reviews."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete HTTP response: its status code, Content-Type ("" if the header is missing) and body."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Expected:
    """The kind and version that a webhook's response must have.

    Attributes:
        api_version: the API version.
        kind: the kind.
        node: returns the schema, by which the response is decoded.
        others: other existing versions of the kind. A response in one of them gets another error text than one in an
            unknown version.
    """

    api_version: str
    kind: str
    node: Callable[[], SchemaNode]
    others: tuple[str, ...] = ()


def decode(response: HttpResponse, expected: Expected) -> Object:
    """Return the object in a response, decoded by the expected schema.

    Its `kind` and `apiVersion` are those of the body, which may be empty.

    Raises:
        CallFailed: the status is not a success, or the body is not of the expected kind.
    """
    content_type = response.content_type or "application/json"
    if "/" not in content_type.partition(";")[0]:
        raise CallFailed("Internal error occurred: mime: no media type", 500)
    if response.status != 101 and not 200 <= response.status <= 206:
        raise status_error(response)
    if not response.body:
        raise CallFailed(f"0-length response with status code: {response.status} and content type: {content_type}")
    try:
        obj, api_version, kind = recognize(_parse(response.body))
        _check_kind(api_version or expected.api_version, kind or expected.kind, expected)
        type_meta = {"apiVersion": api_version, "kind": kind}
        typed.decode(expected.node(), obj)
    except (DecodeError, typed.DecodeError) as error:
        raise CallFailed(str(error)) from None
    return {**obj, **type_meta}


def _parse(body: bytes) -> Any:
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        return yaml.decode(body).obj
    try:
        if _long_number(body) is None:  # numbers beyond int64 become floats, which only the other decoder handles
            return loads(body)
    except ValueError:
        pass
    try:
        return json.decode(body).obj
    except DecodeError as error:
        raise DecodeError(syntax_text(error)) from None


def _check_kind(api_version: str, kind: str, expected: Expected) -> None:
    if (api_version, kind) == (expected.api_version, expected.kind):
        return
    known = kind == "Status" if api_version == "v1" else kind == expected.kind and api_version in expected.others
    if not known:
        raise DecodeError(
            f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {_SCHEME}"
        )
    names = [
        f"{GroupVersion.parse(v).version}.{k}" for v, k in ((api_version, kind), (expected.api_version, expected.kind))
    ]
    raise DecodeError(f"converting ({names[0]}) to ({names[1]}): unknown conversion")


def status_error(response: HttpResponse) -> CallFailed:
    """Return (not raise) the error for an HTTP status that is not a success.

    It is that of the Status in the body, if there is one, or else a text for the code.
    """
    status = _status_of(response.body)
    if status is not None:
        return CallFailed(status.get("message") or "", status.get("code") or response.status)
    text = "unknown"
    if not response.content_type or response.content_type.lower().startswith("text/"):
        text = response.body[:_TEXT_LIMIT].decode("utf-8", "replace").strip()
    return CallFailed(_meaning(response.status, text), response.status)


def _status_of(body: bytes) -> Object | None:
    try:
        obj, api_version, kind = recognize(_parse(body))
        if kind != "Status" or api_version not in ("", "v1"):
            return None
        typed.decode(load(_STATUS), obj)
    except (DecodeError, typed.DecodeError):
        return None
    return obj if obj.get("status") != "Success" else None


_MEANINGS: Final = {
    409: "the server reported a conflict",
    404: "the server could not find the requested resource",
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    405: "the server does not allow this method on the requested resource",
    422: "the server rejected our request due to an error in our request",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
    429: "the server has received too many requests and has asked us to try again later",
}


def _meaning(code: int, text: str) -> str:
    if code in _MEANINGS:
        return _MEANINGS[code]
    if code in (403, 415):
        return text
    if code == 406:
        return (
            text
            if text not in ("", "unknown")
            else "the server was unable to respond with a content type that the client supports"
        )
    if code >= 500:
        return f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def header(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    """Return the value of the first header with this lower-case name, decoded as Latin-1, or ""."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


__all__ = ["Expected", "HttpResponse", "decode", "header", "status_error"]


@dataclass(frozen=True, slots=True)
class Review:
    """A review to be sent to a webhook.

    Attributes:
        uid: the uid of the request, which the response must repeat.
        version: the API version of the review, v1 or v1beta1.
        body: the JSON.
        expected: the kind of the response.
    """

    uid: str
    version: str
    body: bytes
    expected: Expected


def supported_version(versions: Sequence[str]) -> str | None:
    """Return the first of a webhook's versions of the review that is supported, or None."""
    return next((version for version in versions if version in SUPPORTED), None)


class CallFailed(Exception):
    """The error of a call without a usable response.

    The text follows `failed to call webhook: ` in messages. `code` is the HTTP status for metrics.

    Upstream: k8s.io/apiserver/pkg/util/webhook/error.go.
    """

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code
