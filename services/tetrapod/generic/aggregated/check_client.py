"""`CheckClient`: a blocking client for checks of an aggregated API server, with one connection per request.

It sends requests as the front proxy on behalf of a user, or without credentials.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tetrapod.generic.certificates.verification import verify_as_go
from tetrapod.machinery.gvk import Object

MASTER = {"X-Remote-User": "tetrapod:check-apiserver", "X-Remote-Group": "system:masters"}
NOBODY = {"X-Remote-User": "tetrapod:check-apiserver-nobody", "X-Remote-Group": "system:authenticated"}


@dataclass(frozen=True, slots=True)
class CheckResponse:
    """A response of the server under test.

    Attributes:
        status: the HTTP status code.
        headers: the headers by name, in lower case.
        body: the bytes of the whole body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def object(self) -> Object:
        """The body, decoded as a JSON object.

        Raises:
            ValueError: the body is not a JSON object.
        """
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError("the response is not a JSON object")
        return value

    def __str__(self) -> str:
        """Return the status code and the first 200 bytes of the body."""
        text = self.body[:200].decode(errors="replace").strip()
        return f"{self.status} {text}" if text else str(self.status)


@dataclass(frozen=True, slots=True)
class CheckClient:
    """A blocking HTTPS client of the API server under test, which opens a connection for each request.

    Attributes:
        url: `https://HOST:PORT` of the server.
        certificate: the file with the front proxy's client certificate, which the server must trust.
        key: the file with the key of that certificate.
        ca: the file with the CA of the server certificate; None accepts any certificate.
        server_name: the name that the certificate must have for the aggregator; "" if it is not known.
        timeout: the timeout of each request in seconds.
    """

    url: str
    certificate: Path
    key: Path
    ca: Path | None = None
    server_name: str = ""
    timeout: float = 10.0

    def ask(self, path: str, user: Mapping[str, str] = MASTER, **more: Any) -> CheckResponse:
        """Send a request in the way of the aggregator: with the front proxy's certificate and identity headers.

        Args:
            path: the path and the query.
            user: the identity headers, such as `MASTER` (in system:masters) or `NOBODY` (without permissions).
            more: `method` (default GET), `body`, `accept` (default JSON) and `content_type`.

        Raises:
            OSError, http.client.HTTPException: the server sent no valid response within the timeout.
        """
        return self._send(path, dict(user), trusted=True, **more)

    def ask_without_certificate(self, path: str, headers: Mapping[str, str]) -> CheckResponse:
        """Send a GET with these headers, but without a client certificate.

        Raises:
            OSError, http.client.HTTPException: the server sent no valid response within the timeout.
        """
        return self._send(path, dict(headers), trusted=False)

    def verify_certificate(self) -> None:
        """Connect as the aggregator does: the certificate must be signed by `ca` and be valid for `server_name`.

        Raises:
            ssl.SSLError: it is not.
            OSError: the server cannot be reached.
        """
        context = self._context(trusted=True)
        context.check_hostname = True
        address = urlsplit(self.url)
        with (
            socket.create_connection((address.hostname or "", address.port or 443), self.timeout) as connection,
            context.wrap_socket(connection, server_hostname=self.server_name),
        ):
            pass

    def _send(
        self,
        path: str,
        headers: dict[str, str],
        *,
        trusted: bool,
        method: str = "GET",
        body: bytes | None = None,
        accept: str = "application/json",
        content_type: str = "",
    ) -> CheckResponse:
        address = urlsplit(self.url)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=self.timeout, context=self._context(trusted)
        )
        request_headers = {**headers, "Accept": accept} | ({"Content-Type": content_type} if content_type else {})
        with closing(connection):
            connection.request(method, path, body, request_headers)
            response = connection.getresponse()
            return CheckResponse(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def _context(self, trusted: bool) -> ssl.SSLContext:
        context = verify_as_go(ssl.create_default_context(cafile=str(self.ca) if self.ca else None))
        context.check_hostname = False
        if self.ca is None:
            context.verify_mode = ssl.CERT_NONE
        if trusted:
            context.load_cert_chain(self.certificate, self.key)
        return context
