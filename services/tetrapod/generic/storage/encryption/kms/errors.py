"""gRPC errors in Go's notation."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.rpc import Code, RpcError

_NAMES: Final = {Code.OK: "OK", Code.CANCELLED: "Canceled"}


def code_name(code: Code) -> str:
    """Return Go's name of a status code ("DeadlineExceeded")."""
    return _NAMES.get(code) or "".join(word.capitalize() for word in code.name.split("_"))


def rpc_text(error: RpcError) -> str:
    """Return the error's text as Go prints it."""
    details = "context deadline exceeded" if error.code is Code.DEADLINE_EXCEEDED else error.details
    return f"rpc error: code = {code_name(error.code)} desc = {details}"
