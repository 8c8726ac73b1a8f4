"""An HTTP/1.0 server in a thread, whose responses a function returns.

`webhook.py` has a server with its own CA, whose responses can also be late or not HTTP.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Asked(NamedTuple):
    """A request to the server.

    Attributes:
        method: the method, GET or POST.
        path: the path without the query.
        query: the query; "" without one.
        headers: the headers by their names in lower case.
        body: the body.
        certificate: whether the client sent a certificate that the TLS context accepts.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    certificate: bool


@dataclass(frozen=True)
class Answered:
    """A response.

    Attributes:
        status: the status.
        body: the body.
        headers: further headers, by their names in lower case. A `content-length` replaces the length of the body.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def http_server(answer: Callable[[Asked], Answered], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve GET and POST on 127.0.0.1, and yield the port.

    Args:
        answer: returns the response to a request. It is called in a thread of the connection.
        context: the TLS configuration; None to serve without TLS.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            connection = self.connection
            certificate = isinstance(connection, ssl.SSLSocket) and bool(connection.getpeercert())
            answered = answer(Asked(self.command, path, query, headers, body, certificate))
            self.send_response(answered.status)
            for name, value in {"content-length": str(len(answered.body)), **answered.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answered.body)

        do_POST = do_GET  # noqa: N815 - the base class prescribes the name

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
