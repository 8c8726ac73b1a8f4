"""The public door of a running server, for tests that speak plain HTTPS to it."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Reply(NamedTuple):
    status: int
    body: Any
    warnings: list[str]

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class Door:
    """With a client certificate (files), so as whoever that is."""

    def __init__(self, url: str, ca: Path, certificate: Path, key: Path) -> None:
        self.url = url
        self._context = ssl.create_default_context(cafile=str(ca))
        self._context.check_hostname = False
        self._context.load_cert_chain(certificate, key)

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Reply:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": content_type}, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return Reply(answer.status, self._decoded(answer.read()), answer.headers.get_all("warning") or [])
        except urllib.error.HTTPError as error:
            return Reply(error.code, self._decoded(error.read()), error.headers.get_all("warning") or [])

    @staticmethod
    def _decoded(text: bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def until(self, holds: Callable[[Reply], bool], method: str, path: str, body: Any = None, seconds: float = 15) -> Reply:
        """The first answer of which something holds."""
        deadline = time.monotonic() + seconds
        while True:
            reply = self.call(method, path, body)
            if holds(reply):
                return reply
            assert time.monotonic() < deadline, reply
            time.sleep(0.02)
