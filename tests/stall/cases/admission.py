"""Objects that admission policies and webhooks, conversion webhooks or the audit log receive (stall.extended)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stall.case import BODY, Case
from stall.extended import AUDITED, CONVERTED, HOOKED, PATCHED, POLICIES
from stall.message import JSON_PATCH, YAML, Message


def _maps(namespace: str, query: str = "?dryRun=All") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps{query}"


def _data(n: int, value: str = "v") -> bytes:
    entries = ",".join([f'"k{i}":"{value}"' for i in range(n)])
    return b'{"metadata":{"generateName":"a"},"data":{%b}}' % entries.encode()


def _create(name: str, path: str, body: Callable[[int], bytes], limit: int = BODY, most: int = 10_000_000) -> Case:
    return Case(name, "user", lambda n: Message("POST", path, body=body(n)), limit, most)


def _converted(n: int) -> bytes:
    head = '{"apiVersion":"stall.example.com/v2","kind":"Converted","metadata":{"generateName":"a"},"x":['
    return (head + ",".join(['{"a":1}'] * n) + "]}").encode()


_LIST: Final = CONVERTED.replace("/v1/", "/v2/")

CASES: Final = [
    *(_create(f"policy: {name}", _maps(f"policy-{name}"), _data) for name in POLICIES),
    _create(
        "policy: slow pattern, one value of 30 kB",
        _maps("policy-slow-pattern"),
        lambda n: _data(1, "ab" * (n // 2)),
        limit=30_000,
    ),
    _create("policy: formats, 30 kB", _maps("policy-formats"), _data, limit=30_000),
    _create("policy: pairs, 30 kB", _maps("policy-pairs"), _data, limit=30_000),
    _create("policy: pairs, strings of 100 kB", _maps("policy-pairs"), lambda n: _data(n, "v" * 100_000)),
    Case(
        "policy: each, YAML",
        "user",
        lambda n: Message(
            "POST",
            _maps("policy-each"),
            body=b"metadata: {generateName: a}\ndata:\n" + b"".join(b"  k%d: v\n" % i for i in range(n)),
            media_type=YAML,
        ),
    ),
    _create("webhook: entries of data", _maps(HOOKED), _data),
    _create("webhook: one long value", _maps(HOOKED), lambda n: _data(1, "v" * n)),
    _create("webhook: entries of data, patched", _maps(PATCHED), _data),
    _create("webhook: 30 kB, patched", _maps(PATCHED), _data, limit=30_000),
    _create("conversion: list of objects", f"{_LIST}?dryRun=All", _converted),
    _create("conversion: 30 kB", f"{_LIST}?dryRun=All", _converted, limit=30_000),
    Case("conversion: lists", "user", lambda n: Message("GET", _LIST, copies=n), most=16),
    Case(
        "conversion: watches",
        "user",
        lambda n: Message("GET", f"{_LIST}?watch=1&timeoutSeconds=1", parallel=n),
        most=16,
    ),
    _create("audit: entries of data", _maps(AUDITED), _data),
    _create("audit: bad keys of data", _maps(AUDITED), lambda n: _data(n).replace(b'"k', b'"k ')),
    Case(
        "audit: YAML",
        "user",
        lambda n: Message(
            "POST",
            _maps(AUDITED),
            (("Accept", "application/yaml"),),
            body=b"metadata: {generateName: a}\ndata:\n" + b"".join(b"  k%d: v\n" % i for i in range(n)),
            media_type=YAML,
        ),
    ),
    Case(
        "audit: JSON patch",
        "user",
        lambda n: Message(
            "PATCH",
            _maps(AUDITED, "/m1?dryRun=All"),
            body=b"[" + b",".join([b'{"op":"test","path":"/data/a","value":"b"}'] * n) + b"]",
            media_type=JSON_PATCH,
        ),
        most=10_000,
    ),
    Case("audit: lists", "user", lambda n: Message("GET", _maps(AUDITED, ""), copies=n), most=16),
    Case(
        "audit: lists, gzip",
        "user",
        lambda n: Message("GET", _maps(AUDITED, ""), (("Accept-Encoding", "gzip"),), copies=n),
        most=16,
    ),
    Case(
        "audit: lists, YAML",
        "user",
        lambda n: Message("GET", _maps(AUDITED, ""), (("Accept", "application/yaml"),), copies=n),
        most=16,
    ),
    Case("audit: indented lists", "user", lambda n: Message("GET", _maps(AUDITED, "?pretty=true"), copies=n), most=16),
    Case(
        "audit: lists, unread", "user", lambda n: Message("GET", _maps(AUDITED, ""), parallel=n, unread=True), most=16
    ),
    Case(
        "audit: Tables",
        "user",
        lambda n: Message(
            "GET",
            _maps(AUDITED, "?includeObject=Object"),
            (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),),
            copies=n,
        ),
        most=16,
    ),
]
