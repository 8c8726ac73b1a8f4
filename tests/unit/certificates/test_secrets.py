"""The Kubernetes API as the certificates' job uses it: every unusable response is a `SecretsError`."""

from __future__ import annotations

import ssl

import pytest

from support.http_server import Answered, http_server
from tetrapod.generic.certificates.secrets import Cluster, SecretsError


@pytest.mark.parametrize(
    ("length", "body", "reason"), [(9, b"no object", "Expecting value"), (20, b"cut short", "IncompleteRead")]
)
def test_an_unusable_response_is_an_error_that_names_the_request(length: int, body: bytes, reason: str) -> None:
    with http_server(lambda _: Answered(200, body, {"content-length": str(length)})) as port:
        cluster = Cluster(f"http://127.0.0.1:{port}", "token", ssl.create_default_context(), "default")
        with pytest.raises(SecretsError, match=f"GET /api/v1/a: {reason}"):
            cluster.ask("GET", "/api/v1/a")
