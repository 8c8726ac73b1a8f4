"""Anonymous requests of the largest accepted size: they get responses, and leave no more in memory than the caches may
hold.
"""

from __future__ import annotations

import gc
import http.client
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import pytest

from support.attacked import Attacked
from support.http2_connection import Http2Connection, http2_context
from support.wire import send_raw
from tetrapod import testing
from tetrapod.generic.http.limits import MAX_HEADER, MAX_HEADERS, MAX_PATH, MAX_QUERY
from tetrapod.machinery.boundedcache import BoundedCache, weigh

_PODS: Final = "/api/v1/pods"
_TERMS: Final = ",".join(f"k{number}" for number in range(4096))
_COSTLY: Final = {
    "path": ("/" + "%22" * (MAX_PATH // 3 - 1), "", 403),
    "slashes": (_PODS + "/" * (MAX_PATH - len(_PODS)), "", 403),
    "label selector": (f"{_PODS}?labelSelector={_TERMS}", "", 403),
    "label selector and name": (f"{_PODS}?labelSelector={_TERMS}&fieldSelector=metadata.name%3Dx", "", 403),
    "too long a label selector": (f"{_PODS}?labelSelector={_TERMS},k,k", "", 403),
    "field selector": (f"{_PODS}?fieldSelector={','.join(f'k{number}=v' for number in range(4096))}", "", 403),
    "parameters": (f"{_PODS}?watch=0&{'&'.join(f'a{number}=%20' for number in range(9998))}", "", 403),
    "escapes in a parameter": (f"{_PODS}?watch=0&a={'%22' * (MAX_QUERY // 3 - 10)}", "", 403),
    "timeout": (f"{_PODS}?timeout={'1ns' * 80_000}", "", 400),
    "trace": (f"{_PODS}?trace=1{'&' * (MAX_QUERY - 10)}", "", 403),
    "exclusions": (f"/livez?{'&'.join(f'exclude={number}' for number in range(9998))}", "", 200),
    "Accept": (_PODS, f"Accept: {'a/b,' * (MAX_HEADER // 4 - 10)}\r\n", 403),
    "Accept parameters": ("/version", f"Accept: a/b{';c=d' * (MAX_HEADER // 4 - 10)}\r\n", 406),
    "identities": (_PODS, "X-Remote-User: u\r\n" + "X-Remote-Group: g\r\n" * (MAX_HEADERS - 10), 403),
    "impersonated groups": (_PODS, "Impersonate-User: u\r\n" + "Impersonate-Group: g\r\n" * (MAX_HEADERS - 10), 403),
    "impersonated extra": (_PODS, "Impersonate-User: u\r\n" + "Impersonate-Extra-a: v\r\n" * (MAX_HEADERS - 10), 403),
    "token": (_PODS, f"Authorization: Bearer e30.{'W1tb' * (MAX_HEADER // 4 - 20)}.x\r\n", 401),
    "subprotocols": (
        _PODS,
        f"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: {'a,' * 32_000}\r\n",
        403,
    ),
    "addresses": (_PODS, f"X-Forwarded-For: {'1.2.3.4,' * 8_000}\r\n", 403),
}


@pytest.mark.parametrize("name", _COSTLY)
def test_a_costly_request_is_answered_as_a_small_one(server: Attacked, name: str, http2: bool) -> None:
    target, headers, code = _COSTLY[name]
    assert _status(server, target, headers, http2=http2) == code


_REVIEW: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SPACE: Final = "/api/v1/namespaces/default"


def _pod(**spec: Any) -> bytes:
    return orjson.dumps({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})


_BODIES: Final = {
    "YAML of blank lines": (_REVIEW, "application/yaml", b"{" + b"\n" * 1_000_000 + b"}", 422),
    "a field path": (
        f"{_SPACE}/pods?dryRun=All",
        "application/json",
        _pod(
            initContainers=[
                {
                    "name": "i",
                    "image": "i",
                    "env": [{"name": "e", "valueFrom": {"fieldRef": {"fieldPath": "['" * 500_000}}}],
                }
            ]
        ),
        422,
    ),
    "the name of an iSCSI target": (
        f"{_SPACE}/pods?dryRun=All",
        "application/json",
        _pod(volumes=[{"name": "v", "iscsi": {"targetPortal": "t", "lun": 0, "iqn": "iqn.2001-04.a" * 80_000}}]),
        422,
    ),
    "PEM without an end": (
        f"{_SPACE}/secrets?dryRun=All",
        "application/json",
        orjson.dumps(
            {
                "metadata": {"name": "s"},
                "type": "kubernetes.io/tls",
                "stringData": {"tls.crt": "-----BEGIN CERTIFICATE-----\n" * 30_000, "tls.key": ""},
            }
        ),
        201,
    ),
}


@pytest.mark.parametrize("name", _BODIES)
def test_a_long_text_in_a_body_is_matched_in_linear_time(server: Attacked, name: str) -> None:
    """Backtracking took minutes, in which no other request was served. A read times out after 20 s."""
    target, media_type, body, code = _BODIES[name]
    head = f"POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer admin-token\r\n"
    head += f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    assert int(send_raw(server, head.encode() + body).split(b" ", 2)[1]) == code


def _status(server: Attacked, target: str, headers: str, *, http2: bool) -> int:
    """Return the status of a GET with header lines."""
    if not http2:
        head = f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n"
        return int(send_raw(server, head.encode()).split(b" ", 2)[1])
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    connection = Http2Connection(address.hostname, address.port, http2_context(server.ca), 20)
    pairs = [line.split(": ", 1) for line in headers.splitlines()]
    try:
        return connection.request("GET", target, [(name, value) for name, value in pairs]).status
    finally:
        connection.close()


def test_selectors_of_more_terms_than_the_limit_are_bad_requests(server: Attacked, http2: bool) -> None:
    credentials = "Authorization: Bearer admin-token\r\n"
    for selector in (f"labelSelector={_TERMS}", f"fieldSelector={'metadata.name!=x,' * 4095}metadata.name!=y"):
        for more, code in (("", 200), (",metadata.name!=z", 400)):
            target = f"/api/v1/namespaces/default/configmaps?{selector}{more if 'field' in selector else more and ',k'}"
            assert _status(server, target, credentials, http2=http2) == code, target[:100]


def test_long_paths_and_headers_leave_no_more_than_caches_may_hold() -> None:
    with testing.Server() as server:
        context = ssl.create_default_context(cafile=server.ca)
        connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context)
        for number in range(600):
            path = f"/{number}" + "x" * (MAX_PATH - 10)
            connection.request(
                "GET", path, headers={"Accept": f"a/b{number}" + "x" * 60_000, "Host": f"h{number}" + "x" * 60_000}
            )
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 403
        connection.close()
        gc.collect()
        caches: list[BoundedCache[Any, Any]] = [thing for thing in gc.get_objects() if isinstance(thing, BoundedCache)]
        assert len(caches) > 20
        for cache in caches:
            count, size = cache.limits
            assert cache.count <= count
            assert cache.size <= size
            assert sum(weigh(key) for key in (*cache, *cache._old)) <= size
        assert sum(cache.size for cache in caches) < 32 << 20
