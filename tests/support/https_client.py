"""An HTTPS client for tests of a running server, without retries and without a client library."""

from __future__ import annotations

import copy
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support.identity import identity_of
from support.waiting import until

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Reply(NamedTuple):
    status: int
    body: Any
    warnings: list[str]

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


def causes(reply: Reply) -> list[str]:
    """Check that the answer is a 422, and return its causes, each as `FIELD: MESSAGE`."""
    assert reply.status == 422, reply
    return [f"{cause['field']}: {cause['message']}" for cause in reply.body["details"]["causes"]]


class HttpsClient:
    """A client that authenticates with the client certificate of a kubeconfig.

    Args:
        url: the server; by default that of the kubeconfig.
        headers: headers of every request, such as those that impersonate a user.
    """

    def __init__(self, kubeconfig: Path, url: str = "", headers: Mapping[str, str] | None = None) -> None:
        identity = identity_of(kubeconfig)
        self.url = url or identity.url
        self._headers = headers or {}
        self._context = identity.context()

    def with_headers(self, headers: Mapping[str, str]) -> HttpsClient:
        """Return a client of the same user whose requests have further headers."""
        copied = copy.copy(self)
        copied._headers = {**self._headers, **headers}
        return copied

    def lines(self, path: str) -> http.client.HTTPResponse:
        """Start a GET whose answer the caller reads line by line, such as a watch, and closes."""
        return self._open(urllib.request.Request(self.url + path, headers=dict(self._headers)))

    def send(
        self, method: str, path: str, body: bytes, content_type: str = "application/json"
    ) -> http.client.HTTPResponse:
        """Send a body as it is. The caller reads the answer, which must be a success, and closes it."""
        headers = {"content-type": content_type, **self._headers}
        return self._open(urllib.request.Request(self.url + path, body, headers, method=method))

    def _open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        answer = urllib.request.urlopen(request, context=self._context, timeout=60)
        assert isinstance(answer, http.client.HTTPResponse)
        return answer

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Reply:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": content_type, **self._headers}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return Reply(answer.status, self._decoded(answer.read()), answer.headers.get_all("warning") or [])
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, self._decoded(error.read()), error.headers.get_all("warning") or [])

    @staticmethod
    def _decoded(text: bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def until(
        self, condition: Callable[[Reply], bool], method: str, path: str, body: Any = None, timeout: float = 15
    ) -> Reply:
        """Repeat a request until `condition` is true of the reply, and return that reply."""
        return until(lambda: self.call(method, path, body), condition, timeout=timeout, description=f"{method} {path}")


def created(client: HttpsClient, path: str, body: Any) -> Any:
    """Create an object by POST, check that the answer is a 201, and return the stored object."""
    reply = client.call("POST", path, body)
    assert reply.status == 201, reply
    return reply.body


def patched(client: HttpsClient, path: str, patch: Any) -> Any:
    """Send a merge patch, check that the answer is a 200, and return the stored object."""
    reply = client.call("PATCH", path, patch, MERGE)
    assert reply.status == 200, reply
    return reply.body
