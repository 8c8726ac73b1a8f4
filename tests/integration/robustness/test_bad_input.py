"""Malformed, forged, oversized and abandoned requests: each is rejected as upstream does, and the server keeps
serving.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from support.attacked import Attacked
from support.waiting import until
from support.wire import Client, raw_connection, read_to_end, send_raw

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
CREDENTIALS = b"Host: localhost\r\nAuthorization: Bearer admin-token\r\n"


@pytest.fixture(autouse=True)
def serves_on(server: Attacked) -> Iterator[None]:
    yield
    with Client(server) as client:
        assert client("GET", "/readyz").status == 200


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'"x"', b"1", b"\x00", b'{"a":' * 20000, b"[" * 100000, b'{"metadata":' * 9999 + b"1"],
    ids=lambda body: repr(body[:12]),
)
@pytest.mark.parametrize("media_type", ["application/json", "application/yaml"])
def test_bodies_that_are_no_object_are_bad_requests(client: Client, body: bytes, media_type: str) -> None:
    for method, path in (("POST", MAPS), ("PUT", f"{MAPS}/m")):
        assert client(method, path, body, {"Content-Type": media_type}).status == 400, (method, body[:20])


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"{}{}", b"nul", b'{"a":1,}', b"{'a':1}", b"NaN", b'{"a":1e999}'])
def test_bytes_that_are_no_json_are_bad_requests(client: Client, body: bytes) -> None:
    assert client("POST", MAPS, body).status == 400


@pytest.mark.parametrize(
    "body", [b"a: [", b"a: &x [*x, *x]", b"a: b: c", b"\t- x", b"--- 1\n--- 2", b"!!python/object:os.system x", b"? {}"]
)
def test_malformed_and_unsupported_yaml_is_a_bad_request(client: Client, body: bytes) -> None:
    assert client("POST", MAPS, body, {"Content-Type": "application/yaml"}).status == 400


def test_yaml_aliases_do_not_multiply(client: Client) -> None:
    levels = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))
    began = time.monotonic()
    answer = client("POST", MAPS, f"a0: &a0 [x]\n{levels}\n".encode(), {"Content-Type": "application/yaml"})
    assert answer.status == 400
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MAPS, {"data": []}),
        (MAPS, {"data": {"k": 1}}),
        (MAPS, {"metadata": "x"}),
        (MAPS, {"metadata": {"name": 1}}),
        (MAPS, {"metadata": {"labels": [1]}}),
        (MAPS, {"metadata": {"managedFields": 5}}),
        (MAPS, {"metadata": {"creationTimestamp": "yesterday"}}),
        (MAPS, {"kind": 3}),
        (MAPS, {"apiVersion": {}}),
        (MAPS, {"binaryData": {"k": "!"}}),
        (MAPS, {"immutable": "yes"}),
        ("/api/v1/namespaces/default/pods", {"spec": {"containers": {}}}),
        ("/api/v1/namespaces/default/pods", {"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}}),
        ("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": "http"}]}}),
        ("/apis/apps/v1/namespaces/default/deployments", {"spec": {"replicas": 1.5}}),
        ("/apis/apps/v1/namespaces/default/deployments", {"spec": {"replicas": 1 << 40}}),
    ],
    ids=repr,
)
def test_values_of_wrong_types_are_bad_requests(client: Client, path: str, body: object) -> None:
    answer = client("POST", path, body)
    assert answer.status == 400
    assert answer.json["reason"] == "BadRequest"


@pytest.mark.parametrize(
    "path",
    ["/nope", "/api/v9", "/api/v1/nopes", "/apis/nope.io/v1/x", "/api/v1/namespaces/default/configmaps/a/b/c", "/%00"],
)
def test_unknown_paths_are_not_found(client: Client, path: str) -> None:
    assert client("GET", path).status == 404


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "/api/v1/namespaces/%2e%2e/configmaps/x", "//api//v1", "/api/v1/namespaces/%ff/configmaps"],
)
def test_odd_paths_are_answered(client: Client, path: str) -> None:
    assert client("GET", path).status < 500


@pytest.mark.parametrize("method", ["TRACE", "PROPFIND", "X-Y", "OPTIONS", "HEAD"])
def test_methods_that_a_resource_lacks_are_not_allowed(client: Client, method: str) -> None:
    assert client(method, MAPS).status == 405


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/", "json", ";", "a/b; charset", "*/*"],
)
def test_bodies_of_unknown_media_types_are_unsupported(client: Client, media_type: str) -> None:
    assert client("POST", MAPS, CONFIG_MAP, {"Content-Type": media_type}).status in (400, 415)
    assert client("PATCH", f"{MAPS}/kube-root-ca.crt", {}, {"Content-Type": media_type}).status == 415


@pytest.mark.parametrize(
    "accept", ["text/html", "application/", ";;", "application/json;as=Nope;v=v9;g=x", "image/*", "a" * 5000]
)
def test_answers_that_are_not_to_be_had_are_not_acceptable(client: Client, accept: str) -> None:
    assert client("GET", MAPS, headers={"Accept": accept}).status in (200, 406)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_bodies_beyond_three_mebibytes_are_too_large(client: Client, method: str) -> None:
    path = MAPS if method == "POST" else f"{MAPS}/m"
    headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    answer = client(method, path, b'{"a":"' + b"x" * (3 << 20) + b'"}', headers)
    assert answer.status == 413
    assert answer.json["message"] == "Request entity too large: limit is 3145728"


def test_a_chunked_body_without_end_is_too_large(server: Attacked) -> None:
    with raw_connection(server) as connection:
        connection.sendall(f"POST {MAPS} HTTP/1.1\r\n".encode() + CREDENTIALS + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError, OSError):
            for _ in range(400):
                connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert b" 413 " in read_to_end(connection)[:20]


@pytest.mark.parametrize(
    "token", ["wrong", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x" * 60000, "\u00e9", "ey" + "J" * 500 + ".e30.x"]
)
def test_bad_tokens_are_unauthorized(client: Client, token: str) -> None:
    answer = client("GET", MAPS, headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 401
    assert answer.json["reason"] == "Unauthorized"


@pytest.mark.parametrize("value", ["Bearer", "Basic YTpi", "Basic !", "Negotiate x", ""])
def test_unknown_credentials_give_no_access(client: Client, value: str) -> None:
    assert client("GET", MAPS, headers={"Authorization": value}).status in (401, 403)


def test_forged_front_proxy_headers_give_no_identity(server: Attacked, http2: bool) -> None:
    forged = {
        "X-Remote-User": "admin",
        "X-Remote-Group": "system:masters",
        "X-Remote-Uid": "1",
        "X-Remote-Extra-Scopes": "all",
    }
    with Client(server, token="", http2=http2) as nobody:
        answer = nobody("GET", MAPS, headers=forged)
    assert answer.status == 403
    assert "system:anonymous" in answer.json["message"]
    with Client(server, token="alice-token", http2=http2) as alice:
        assert '"alice"' in alice("GET", MAPS, headers=forged).json["message"]


def test_forged_impersonation_needs_the_right_to_it(server: Attacked, http2: bool) -> None:
    with Client(server, token="alice-token", http2=http2) as alice:
        assert (
            alice("GET", MAPS, headers={"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}).status
            == 403
        )
        assert alice("GET", MAPS, headers={"Impersonate-Group": "system:masters"}).status in (400, 403, 500)


@pytest.mark.parametrize(
    "data",
    [
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01" + bytes(50),
        b"A" * 70000,
    ],
    ids=lambda data: repr(data[:40]),
)
def test_bytes_that_are_no_http_are_rejected_and_the_connection_ends(server: Attacked, data: bytes) -> None:
    answer = send_raw(server, data + (b"" if data.endswith(b"\n") else b"\r\n\r\n"), timeout=10)
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))


def test_a_head_beyond_a_mebibyte_is_rejected(server: Attacked) -> None:
    head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(1100))
    assert b" 431 " in send_raw(server, head)[:20]


def test_plain_http_on_the_secure_port_does_not_affect_others(server: Attacked) -> None:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.settimeout(10)
        with contextlib.suppress(ConnectionError):
            connection.recv(1000)


def test_slow_clients_do_not_delay_others(server: Attacked, client: Client) -> None:
    """Open fifty connections with an incomplete head and fifty with an incomplete body."""
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(raw_connection(server)).sendall(b"GET /api HTTP/1.1\r\nHost: ")
            body = stack.enter_context(raw_connection(server))
            body.sendall(f"POST {MAPS} HTTP/1.1\r\n".encode() + CREDENTIALS + b"Content-Length: 1000\r\n\r\n{")
        began = time.monotonic()
        for _ in range(20):
            assert client("GET", MAPS).status == 200
        assert time.monotonic() - began < 5


def test_a_client_that_reads_nothing_does_not_stop_the_others(server: Attacked, client: Client) -> None:
    with raw_connection(server) as deaf:
        deaf.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\n".encode() + CREDENTIALS + b"\r\n")
        filler = "x" * 100_000
        client("POST", MAPS, {**CONFIG_MAP, "metadata": {"name": "loud"}})
        for i in range(100):
            answer = client(
                "PUT", f"{MAPS}/loud", {**CONFIG_MAP, "metadata": {"name": "loud"}, "data": {"k": f"{i}{filler}"}}
            )
            assert answer.status == 200
        assert client("DELETE", f"{MAPS}/loud").status == 200


def test_clients_that_vanish_are_forgotten(server: Attacked, client: Client) -> None:
    def vanish(data: bytes) -> None:
        with raw_connection(server) as connection:
            connection.sendall(data)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset the connection

    for _ in range(10):
        vanish(f"GET {MAPS}?watch=1 HTTP/1.1\r\n".encode() + CREDENTIALS + b"\r\n")
        vanish(f"POST {MAPS} HTTP/1.1\r\n".encode() + CREDENTIALS + b"Content-Length: 1000\r\n\r\n{")
        vanish(f"PUT {MAPS}/x HTTP/1.1\r\n".encode() + CREDENTIALS + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab")
        vanish(f"GET {MAPS} HTTP/1.1\r\n".encode() + CREDENTIALS + b"\r\n")
    until(lambda: watches_in_flight(client) == 0, timeout=10)


def watches_in_flight(client: Client) -> float:
    lines = client("GET", "/metrics").body.decode().splitlines()
    found = [
        line for line in lines if line.startswith("apiserver_longrunning_requests{") and 'resource="configmaps"' in line
    ]
    return sum(float(line.rpartition(" ")[2]) for line in found)
