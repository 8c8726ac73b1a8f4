"""Requests in unusual pieces: small segments, small chunks, many at once, upgrades."""

from __future__ import annotations

from typing import Final

from stall.case import BODY, HEAD, Case
from stall.message import Message
from stall.setup import MAPS

_UPGRADE: Final = (
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
)
_CREATE: Final = f"{MAPS}?dryRun=All"


def _value(n: int) -> bytes:
    return b'{"metadata":{"generateName":"a"},"data":{"a":"' + b"x" * n + b'"}}'


CASES: Final = [
    Case(
        "segments: a head byte by byte",
        "anonymous",
        lambda n: Message("GET", "/" + "a" * n, segment=1),
        HEAD,
        most=20_000,
    ),
    Case("segments: a head in small segments", "anonymous", lambda n: Message("GET", "/" + "a" * n, segment=64), HEAD),
    Case(
        "segments: headers in small segments",
        "anonymous",
        lambda n: Message("GET", MAPS, tuple((f"X-{i}", "a") for i in range(n)), segment=128),
        HEAD,
    ),
    Case(
        "segments: a body byte by byte",
        "user",
        lambda n: Message("POST", _CREATE, body=_value(n), segment=1),
        most=20_000,
    ),
    Case("segments: a body in small segments", "user", lambda n: Message("POST", _CREATE, body=_value(n), segment=512)),
    Case("chunks of one byte", "user", lambda n: Message("POST", _CREATE, body=_value(n), chunk=1), BODY),
    Case(
        "chunks of one byte, anonymous", "anonymous", lambda n: Message("POST", _CREATE, body=_value(n), chunk=1), BODY
    ),
    Case("chunks of 64 bytes, too many", "user", lambda n: Message("POST", _CREATE, body=_value(n), chunk=64), 8 << 20),
    Case("pipelining: GETs", "anonymous", lambda n: Message("GET", "/version", copies=n), most=4000),
    Case("pipelining: GETs of a user", "user", lambda n: Message("GET", f"{MAPS}/m1", copies=n), most=4000),
    Case("pipelining: creates", "user", lambda n: Message("POST", _CREATE, body=_value(10), copies=n), most=1000),
    Case("connections: lists", "user", lambda n: Message("GET", MAPS, parallel=n), most=64),
    Case(
        "connections: heads of 500 kB",
        "anonymous",
        lambda n: Message("GET", "/" + "a" * 500_000, parallel=n),
        HEAD,
        most=32,
    ),
    Case(
        "connections: bodies of 1 MB",
        "user",
        lambda n: Message("POST", _CREATE, body=_value(1 << 20), parallel=n),
        most=16,
    ),
    Case("unread: lists", "user", lambda n: Message("GET", MAPS, parallel=n, unread=True), most=16),
    Case(
        "unread: lists, gzip",
        "user",
        lambda n: Message("GET", MAPS, (("Accept-Encoding", "gzip"),), parallel=n, unread=True),
        most=16,
    ),
    Case(
        "unread: Tables",
        "user",
        lambda n: Message(
            "GET", MAPS, (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),), parallel=n, unread=True
        ),
        most=16,
    ),
    Case(
        "unread: watches",
        "user",
        lambda n: Message("GET", f"{MAPS}?watch=1&timeoutSeconds=2", parallel=n, unread=True),
        most=64,
    ),
    Case("unread: pipelined lists", "user", lambda n: Message("GET", MAPS, copies=n, unread=True), most=64),
    Case("unread: OpenAPI v2", "user", lambda n: Message("GET", "/openapi/v2", parallel=n, unread=True), most=16),
    Case(
        "WebSocket of a pod that is not there",
        "editor",
        lambda n: Message(
            "GET", "/api/v1/namespaces/stall/pods/p/exec?command=a", _UPGRADE, trailing=b"\x82\x80aaaa" * n
        ),
        1 << 20,
    ),
    Case(
        "WebSocket of a watch",
        "user",
        lambda n: Message("GET", f"{MAPS}?watch=1&timeoutSeconds=1", _UPGRADE, trailing=b"\x82\x80aaaa" * n),
        1 << 20,
    ),
    Case(
        "Upgrade with bytes behind", "anonymous", lambda n: Message("GET", MAPS, _UPGRADE, trailing=b"a" * n), 2 << 20
    ),
    Case("garbage behind a request", "anonymous", lambda n: Message("GET", MAPS, trailing=b"\r\n" * n), 2 << 20),
    Case("garbage instead of a request", "anonymous", lambda n: Message("\x16\x03" * n, MAPS), 1 << 20),
]
