"""--cors-allowed-origins: preflight requests and the headers of responses, as upstream's filter has them."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from support.failing_starts import start_error
from support.server import Server, running

ALLOWED = {
    "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
    "access-control-allow-headers": (
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, "
        "If-Modified-Since"
    ),
    "access-control-expose-headers": "Date",
    "access-control-allow-credentials": "true",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(
        tmp_path_factory.mktemp("data"), r"--cors-allowed-origins=//example\.com(:|$),^https://localhost:"
    ) as server:
        yield server


def ask(server: Server, method: str, path: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, CORS headers and body of an anonymous request."""
    context = ssl._create_unverified_context()
    address = server.url.removeprefix("https://")
    with closing(http.client.HTTPSConnection(address, context=context, timeout=30)) as connection:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        shown = {name.lower(): value for name, value in reply.getheaders()}
        return reply.status, {k: v for k, v in shown.items() if k.startswith("access-control")}, reply.read()


@pytest.mark.parametrize("origin", ["https://example.com", "http://example.com:8080", "https://localhost:3000"])
def test_preflight_requests_of_allowed_origins_need_no_credentials(server: Server, origin: str) -> None:
    expected = {"access-control-allow-origin": origin, **ALLOWED}
    path = "/api/v1/namespaces/default/secrets"
    assert ask(server, "OPTIONS", path, origin=origin) == (204, expected, b"")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/version", {}, 200),
        ("/api/v1/secrets", {}, 403),
        ("/api/v1/secrets", {"authorization": "Bearer wrong"}, 401),
        ("/readyz", {}, 200),
    ],
)
def test_all_responses_to_allowed_origins_have_the_headers(
    server: Server, path: str, headers: dict[str, str], status: int
) -> None:
    code, shown, _ = ask(server, "GET", path, origin="https://example.com", **headers)
    assert (code, shown) == (status, {"access-control-allow-origin": "https://example.com", **ALLOWED})


@pytest.mark.parametrize("origin", ["https://example.com.evil.org", "https://evil.org", ""])
def test_other_origins_get_no_headers(server: Server, origin: str) -> None:
    headers = {"origin": origin} if origin else {}
    assert ask(server, "GET", "/version", **headers)[:2] == (200, {})
    assert ask(server, "OPTIONS", "/api/v1/secrets", **headers)[:2] == (403, {})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("example.com", "regular expression does not pin to start/end of host in the origin header"),
        ("//example.com", "regular expression does not pin to start/end of host in the origin header"),
        ("^(", "error parsing regexp: missing closing ): `^(`"),
    ],
)
def test_unsafe_patterns_are_rejected(tmp_path: Path, pattern: str, text: str) -> None:
    expected = f"--cors-allowed-origins has an invalid regular expression: {text}"
    assert expected in start_error(tmp_path, f"--cors-allowed-origins={pattern}")
