"""The Kubernetes API as the certificates' job uses it: every unusable response is a `SecretsError`."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tetrapod.generic.certificates.secrets import Cluster, SecretsError


@pytest.mark.parametrize(
    ("length", "body", "reason"), [(9, b"no object", "Expecting value"), (20, b"cut short", "IncompleteRead")]
)
def test_an_unusable_response_is_an_error_that_names_the_request(length: int, body: bytes, reason: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        cluster = Cluster(f"http://127.0.0.1:{server.server_port}", "token", ssl.create_default_context(), "default")
        try:
            with pytest.raises(SecretsError, match=f"GET /api/v1/a: {reason}"):
                cluster.ask("GET", "/api/v1/a")
        finally:
            server.shutdown()
            thread.join()
