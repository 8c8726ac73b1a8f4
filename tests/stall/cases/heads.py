"""Heads of requests: targets, queries and headers of any length, mostly from anonymous users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stall.case import HEAD, Case
from stall.message import Headers, Message
from stall.setup import MAPS


def _query(
    name: str, query: Callable[[int], str], path: str = MAPS, who: str = "anonymous", method: str = "GET"
) -> Case:
    return Case(name, who, lambda n: Message(method, f"{path}?{query(n)}"), HEAD)


def _header(name: str, headers: Callable[[int], Headers], who: str = "anonymous", path: str = MAPS) -> Case:
    return Case(name, who, lambda n: Message("GET", path, headers(n)), HEAD)


def _path(name: str, path: Callable[[int], str], who: str = "anonymous") -> Case:
    return Case(name, who, lambda n: Message("GET", path(n)), HEAD)


def _joined(form: str, separator: str = ",") -> Callable[[int], str]:
    return lambda n: separator.join([form.format(i) for i in range(n)])


def _one(name: str, form: str, separator: str = ",") -> Callable[[int], Headers]:
    joined = _joined(form, separator)
    return lambda n: ((name, joined(n)),)


def _many(name: str, value: str) -> Callable[[int], Headers]:
    return lambda n: tuple((name.format(i), value.format(i)) for i in range(n))


def _distinct_paths(n: int) -> list[Message]:
    return [Message("GET", f"/{i}" + "a" * 900_000) for i in range(n)]


CASES: Final = [
    _query("label selector: existing keys", lambda n: "labelSelector=" + _joined("k{}")(n)),
    _query("label selector: equalities", lambda n: "labelSelector=" + _joined("k{}%3Dv")(n)),
    _query("label selector: one set", lambda n: f"labelSelector=k+in+({_joined('v{}')(n)})"),
    _query("label selector: many sets", lambda n: "labelSelector=" + _joined("k{}+notin+(a,b)")(n)),
    _query("label selector: blanks", lambda n: "labelSelector=" + "+" * n),
    _query("label selector: parentheses", lambda n: "labelSelector=" + "(" * n),
    _query("label selector: exclamation marks", lambda n: "labelSelector=" + "!" * n),
    _query("label selector: one key", lambda n: "labelSelector=" + "k" * n),
    _query("label selector of a user", lambda n: "labelSelector=" + _joined("!k{}")(n), who="user"),
    _query(
        "label selector of a watch",
        lambda n: "timeoutSeconds=1&watch=1&labelSelector=" + _joined("!k{}")(n),
        who="user",
    ),
    _query("field selector: terms", lambda n: "fieldSelector=" + _joined("a{}%3Db")(n)),
    _query("field selector: one field", lambda n: "fieldSelector=" + _joined("metadata.name%3Db{}")(n)),
    _query("field selector: escapes", lambda n: "fieldSelector=a%3D" + "%5C%5C" * n),
    _query("field selector of a user", lambda n: "fieldSelector=" + _joined("metadata.name!%3Db{}")(n), who="user"),
    _query(
        "selectors of deletecollection", lambda n: "labelSelector=" + _joined("k{}")(n), who="user", method="DELETE"
    ),
    _query("query: parameters of a list", lambda n: "watch=0&" + _joined("a{}=%20", "&")(n)),
    _query("query: one parameter again and again", _joined("fieldManager=m{}", "&"), who="user"),
    Case(
        "query: dryRun again and again",
        "user",
        lambda n: Message("DELETE", f"{MAPS}?{_joined('dryRun=All', '&')(n)}"),
        HEAD,
        most=9_999,  # as in Go, a query of more parameters counts as empty: the objects would be deleted
    ),
    _query("query: ampersands", lambda n: "&" * n),
    _query("query: semicolons", lambda n: ";" * n),
    _query("query: percent signs", lambda n: "a=" + "%25" * n),
    _query("query: bad escapes", lambda n: "a=" + "%zz" * n),
    _query("query: non-ASCII", lambda n: "a=" + "%c3%a9" * n),
    _query("query: long resourceVersion", lambda n: "resourceVersion=" + "9" * n, who="user"),
    _query("query: long limit", lambda n: "limit=" + "9" * n, who="user"),
    _query("query: long timeout", lambda n: "timeoutSeconds=" + "9" * n, who="user"),
    _query("query: long duration", lambda n: "timeout=" + "1h" * n, who="user"),
    _query("query: long continue token", lambda n: "limit=1&continue=" + "eyJ2" * n, who="user"),
    _query("query: long boolean", lambda n: "pretty=" + "t" * n, who="user"),
    _path("path: escaped quotes", lambda n: "/" + "%22" * n),
    _path("path: one long name", lambda n: "/" + "a" * n),
    _path("path: slashes", lambda n: "/" + "/" * n),
    _path("path: segments", lambda n: "/apis" + "/a" * n),
    _path("path: dots", lambda n: "/api/v1" + "/.." * n),
    _path("path: non-ASCII", lambda n: "/" + "%ff" * n),
    _path("path: long namespace", lambda n: f"/api/v1/namespaces/{'a' * n}/configmaps"),
    _path("path: long name", lambda n: f"{MAPS}/{'a' * n}", who="user"),
    _path("path: long group", lambda n: f"/apis/{'a.' * n}b/v1/x"),
    _path("path: long subresource", lambda n: f"/api/v1/namespaces/stall/pods/p/{'a' * n}"),
    _path("path: service proxy", lambda n: f"/api/v1/namespaces/stall/services/http:a:80/proxy/{'%2f' * n}"),
    _path("path: health check", lambda n: "/readyz?" + "&".join(f"exclude=a{i}" for i in range(n))),
    Case("path: many long paths", "anonymous", _distinct_paths, HEAD, most=100),
    Case("method: long", "anonymous", lambda n: Message("A" * n, MAPS), HEAD),
    _header("Accept: clauses", _one("Accept", "a/b;q=0.{}")),
    _header("Accept: empty clauses", lambda n: (("Accept", "," * n),)),
    _header("Accept: parameters", lambda n: (("Accept", "application/json" + ";a=b" * n),)),
    _header("Accept: quoted", lambda n: (("Accept", 'application/json;a="' + "\\\\" * n + '"'),)),
    _header("Accept: acceptable clauses", _one("Accept", "application/json;as=Table;v={};g=meta.k8s.io")),
    _header("Accept: headers", _many("Accept", "a/b;q=0.{}")),
    _header("Accept of a user", _one("Accept", "a/b;q=0.{}"), who="user"),
    _header(
        "Accept of discovery",
        _one("Accept", "application/json;g=apidiscovery.k8s.io;v=v{};as=APIGroupDiscoveryList"),
        path="/apis",
    ),
    _header("Accept of OpenAPI", _one("Accept", "a/b;q=0.{}"), path="/openapi/v2"),
    _header("Accept of metrics", _one("Accept", "a/b;q=0.{}"), path="/metrics"),
    _header("Accept-Encoding: clauses", _one("Accept-Encoding", "gzip;q=0.{}")),
    _header("Accept-Encoding of a user", _one("Accept-Encoding", "gzip;q=0.{}"), who="user"),
    _header("If-None-Match: tags", _one("If-None-Match", '"{}"'), path="/openapi/v3"),
    _header("Authorization: long bearer token", lambda n: (("Authorization", "Bearer " + "a" * n),)),
    _header("Authorization: long JWT", lambda n: (("Authorization", "Bearer " + "eyJh." * n),)),
    _header(
        "Authorization: JWT of three parts",
        lambda n: (("Authorization", f"Bearer eyJhbGciOiJSUzI1NiJ9.{'eyJh' * n}.AAAA"),),
    ),
    _header("Authorization: basic", lambda n: (("Authorization", "Basic " + "a" * n),)),
    _header("Authorization: headers", _many("Authorization", "Bearer a{}")),
    _header(
        "Sec-WebSocket-Protocol: tokens", _one("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.a{}")
    ),
    _header("X-Remote-Group: headers", _many("X-Remote-Group", "g{}")),
    _header("X-Remote-Extra: headers", _many("X-Remote-Extra-{}", "g{}")),
    _header("X-Remote-User: headers", _many("X-Remote-User", "g{}")),
    _header("Impersonate-Group: headers", _many("Impersonate-Group", "g{}"), who="user"),
    _header(
        "Impersonate-Extra: headers",
        lambda n: (("Impersonate-User", "x"), *_many("Impersonate-Extra-{}", "%41{}")(n)),
        who="user",
    ),
    _header(
        "Impersonate-Group of an admin",
        lambda n: (("Impersonate-User", "x"), *_many("Impersonate-Group", "g{}")(n)),
        who="admin",
    ),
    _header("headers of many names", _many("X-{}", "a")),
    _header("headers of one name", _many("X-A", "a{}")),
    _header("header: one long value", lambda n: (("X-A", "a" * n),)),
    _header("header: blanks", lambda n: (("X-A", "a" + " \t" * n + "a"),)),
    _header("header: one long name", lambda n: (("X" * n, "a"),)),
    _header("Cookie: pairs", _one("Cookie", "a{}=b", "; ")),
    _header("Connection: tokens", _one("Connection", "a{}")),
    _header(
        "Connection: Upgrade among tokens",
        lambda n: (("Connection", _joined("a{}")(n) + ",Upgrade"), ("Upgrade", "websocket")),
    ),
    _header("Upgrade: protocols", lambda n: (("Connection", "Upgrade"), ("Upgrade", _joined("SPDY/3.{}")(n)))),
    _header("Host: long", lambda n: (("Host", "a" * n),)),
    _header("Host: labels", lambda n: (("Host", "a." * n),)),
    _header("Origin: long", lambda n: (("Origin", "http://" + "a." * n),)),
    _header("User-Agent: long", lambda n: (("User-Agent", "a/" * n),), who="user"),
    _header("X-Forwarded-For: addresses", _one("X-Forwarded-For", "10.0.0.{}")),
    _header("traceparent: long", lambda n: (("traceparent", "00-" + "a" * n),)),
    _header(
        "tracestate: entries",
        lambda n: (("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"), ("tracestate", _joined("a{}=b")(n))),
    ),
    _header("baggage: entries", _one("baggage", "a{}=b")),
    _header("Range: ranges", lambda n: (("Range", "bytes=" + _joined("{}-")(n)),), path="/openapi/v2"),
    _header("Audit-ID: long", lambda n: (("Audit-ID", "a" * n),)),
    _header("Expect: long", lambda n: (("Expect", "a," * n),)),
]
