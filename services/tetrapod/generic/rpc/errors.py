"""Errors of gRPC calls: status codes, and their mapping from HTTP/2 errors and HTTP status codes."""

from __future__ import annotations

from enum import IntEnum
from typing import Final
from urllib.parse import unquote


class Code(IntEnum):
    """The gRPC status codes (grpc/doc/statuscodes.md)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


_NAMES: Final = {Code.OK: "OK", Code.CANCELLED: "Canceled"}
"""The Go names of the status codes for which `code_name` cannot derive them from the gRPC names."""


class RpcError(Exception):
    """A failed call.

    Attributes:
        code: the status code.
        details: the server's message, or a local text if the server sent none.
    """

    def __init__(self, code: Code, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details


_OF_RESET: Final = {7: Code.UNAVAILABLE, 8: Code.CANCELLED, 11: Code.RESOURCE_EXHAUSTED, 12: Code.PERMISSION_DENIED}
"""The status of a call by the HTTP/2 error code of a RST_STREAM: REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM and
INADEQUATE_SECURITY.
"""
_OF_HTTP: Final = {
    400: Code.INTERNAL,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.UNIMPLEMENTED,
    429: Code.UNAVAILABLE,
    502: Code.UNAVAILABLE,
    503: Code.UNAVAILABLE,
    504: Code.UNAVAILABLE,
}


def error_from_reset(reason: int) -> RpcError:
    """Return (not raise) the error for a stream that the server reset (gRPC's PROTOCOL-HTTP2.md, Errors).

    `reason` is the HTTP/2 error code.
    """
    return RpcError(_OF_RESET.get(reason, Code.INTERNAL), f"stream terminated by RST_STREAM with error code {reason}")


def error_from_http_status(status: str) -> RpcError:
    """Return (not raise) the error for a response with an HTTP status other than 200.

    Upstream: gRPC's http-grpc-status-mapping.md
    """
    code = _OF_HTTP.get(int(status) if status.isdigit() else 0, Code.UNKNOWN)
    return RpcError(code, f"unexpected HTTP status code received from server: {status}")


def error_from_trailers(trailers: dict[str, str]) -> RpcError | None:
    """Return the error in the trailers of a call, or None if it succeeded. Trailers without a status mean INTERNAL."""
    status = trailers.get("grpc-status", "")
    if status == "0":
        return None
    if not status.isdigit():
        return RpcError(Code.INTERNAL, "the server closed the stream without sending a status")
    code = Code(int(status)) if int(status) <= max(Code) else Code.UNKNOWN
    return RpcError(code, unquote(trailers.get("grpc-message", "")))


def code_name(code: Code) -> str:
    """Return Go's name of a status code ("DeadlineExceeded")."""
    return _NAMES.get(code) or "".join(word.capitalize() for word in code.name.split("_"))


def rpc_text(error: RpcError) -> str:
    """Return the error's text as Go prints it ("rpc error: code = … desc = …")."""
    details = "context deadline exceeded" if error.code is Code.DEADLINE_EXCEEDED else error.details
    return f"rpc error: code = {code_name(error.code)} desc = {details}"
