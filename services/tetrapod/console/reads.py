"""Reads from the API server. Nothing here can send a request with another method than GET.

A path that a user chooses is checked, because a GET can have effects too: `proxy`, `exec` and similar subresources
reach other programs, a watch does not end, and profiles cost the server seconds.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import orjson

from tetrapod.generic.proxy import BackendError, BackendPool
from tetrapod.generic.webhook.kubeconfig import Target
from tetrapod.machinery import requestinfo

_TIMEOUT: Final = 20.0
_LIMIT: Final = 256 << 20
_VERBS: Final = frozenset({"get", "list"})
_CONNECTING: Final = frozenset({"proxy", "exec", "attach", "portforward"})
_OTHER_PATHS: Final = re.compile(
    r"/(?:(?:api|apis|openapi|\.well-known|healthz|livez|readyz)(?:/.*)?|version|metrics(?:/slis)?|statusz|flagz)?"
)
_TARGET: Final = re.compile(r"/(?!/)[!-~]*")


class ReadError(Exception):
    """A read that returned no data.

    Attributes:
        status: the HTTP status of the response; 0 if no response arrived.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Answer(NamedTuple):
    """A response: its status and its body."""

    status: int
    body: bytes


class Reads:
    """Reads from one API server, with the credentials of a kubeconfig."""

    def __init__(self, target: Target) -> None:
        self.url = target.url.rstrip("/")
        self._target = target
        self._pool = BackendPool()

    async def fetch(self, path: str, server: str = "", accept: str = "application/json") -> Answer:
        """Send a GET and return the response, with any status.

        Args:
            path: path and query.
            server: the URL of another process of the same API server; "" for the server itself.
            accept: the accepted media type.

        Raises:
            ReadError: no response arrived. Its status is 0.
        """
        try:
            credentials = await asyncio.to_thread(self._target.auth_headers)  # may run a credential plugin
            headers = [(b"accept", accept.encode()), *credentials]
            url = (server or self.url) + path
            tls = self._target.endpoint.tls
            if server and tls is not None:
                tls = replace(tls, server_name="")  # the kubeconfig's name is that of the server itself
            status, _, body = await self._pool.fetch("GET", url, b"", headers, _TIMEOUT, tls=tls, limit=_LIMIT)
        except TimeoutError:
            raise ReadError(0, f"no response within {_TIMEOUT:.0f} seconds") from None
        except (BackendError, OSError) as error:
            raise ReadError(0, str(error)) from None
        if status == 401 and self._target.credentials.tokens is not None:
            self._target.credentials.tokens.reject()
        return Answer(status, body)

    async def text(self, path: str, server: str = "") -> str:
        """Return the body of a response with status 200. Raises ReadError for any other."""
        answer = await self.fetch(path, server, "text/plain")
        if answer.status != 200:
            raise ReadError(answer.status, error_message(answer))
        return answer.body.decode("utf-8", "replace")

    async def object(self, path: str) -> dict[str, Any]:
        """Return the JSON object of a response with status 200. Raises ReadError for any other."""
        answer = await self.fetch(path)
        if answer.status != 200:
            raise ReadError(answer.status, error_message(answer))
        try:
            decoded = orjson.loads(answer.body)
        except ValueError:
            decoded = None
        if not isinstance(decoded, dict):
            raise ReadError(answer.status, f"the response to {path} is not a JSON object")
        return decoded

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()


def error_message(answer: Answer) -> str:
    """Return the message of an error response: that of its Status object, or the begin of its text."""
    try:
        decoded = orjson.loads(answer.body)
    except ValueError:
        decoded = None
    if isinstance(decoded, dict) and isinstance(decoded.get("message"), str):
        return str(decoded["message"])
    return answer.body[:500].decode("utf-8", "replace").strip() or f"status {answer.status}"


def checked_path(target: str) -> str:
    """Return `target`, the path and query of a request, if a GET of it reads only and ends soon.

    Raises:
        ValueError: it does not. The text says why.
    """
    if not _TARGET.fullmatch(target) or "#" in target:
        raise ValueError("the path must begin with one / and contain neither spaces nor #; encode them as %20 and %23")
    path, _, query = target.partition("?")
    path = unquote(path)
    if any(segment in (".", "..") for segment in path.split("/")):
        raise ValueError("the path must not contain the segments . and ..")
    try:
        info = requestinfo.parse("GET", path, query)
    except requestinfo.UnknownRequestError as error:
        raise ValueError(str(error)) from None
    if not info.is_resource_request:
        if not _OTHER_PATHS.fullmatch(path):
            raise ValueError(f"{path} is none of the paths that the console reads")
    elif info.verb not in _VERBS:
        raise ValueError(f"the console reads objects and lists, and this request is a {info.verb}")
    elif info.subresource in _CONNECTING:
        raise ValueError(f"the subresource {info.subresource} reaches other programs, which may act on the request")
    return target
