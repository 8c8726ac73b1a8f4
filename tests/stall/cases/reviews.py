"""Reviews, which are answered and not stored: what users may ask about themselves and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from stall.case import BODY, Case
from stall.message import Message
from stall.setup import SPACE

_AUTHORIZATION: Final = "/apis/authorization.k8s.io/v1"
_SELF: Final = f"{_AUTHORIZATION}/selfsubjectaccessreviews"
_LOCAL: Final = f"{_AUTHORIZATION}/namespaces/stall/localsubjectaccessreviews"


def _review(name: str, path: str, spec: Callable[[int], dict[str, Any]], who: str = "user") -> Case:
    return Case(name, who, lambda n: Message("POST", path, body=orjson.dumps({"spec": spec(n)})), BODY)


def _resource(**more: Any) -> dict[str, Any]:
    return {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "stall", **more}}


def _requirement(i: int) -> dict[str, Any]:
    return {"key": f"k{i}", "operator": "In", "values": ["a"]}


CASES: Final = [
    _review(
        "self review: raw label selector",
        _SELF,
        lambda n: _resource(labelSelector={"rawSelector": ",".join(f"k{i}" for i in range(n))}),
    ),
    _review(
        "self review: raw field selector",
        _SELF,
        lambda n: _resource(fieldSelector={"rawSelector": ",".join(f"k{i}=v" for i in range(n))}),
    ),
    _review("self review: raw selector of blanks", _SELF, lambda n: _resource(labelSelector={"rawSelector": " " * n})),
    _review(
        "self review: raw selector of equals signs", _SELF, lambda n: _resource(labelSelector={"rawSelector": "=" * n})
    ),
    _review(
        "self review: raw field selector of escapes",
        _SELF,
        lambda n: _resource(fieldSelector={"rawSelector": "metadata.name=" + "\\," * n}),
    ),
    _review(
        "self review: label requirements",
        _SELF,
        lambda n: _resource(labelSelector={"requirements": [_requirement(i) for i in range(n)]}),
    ),
    _review(
        "self review: field requirements",
        _SELF,
        lambda n: _resource(fieldSelector={"requirements": [_requirement(i) for i in range(n)]}),
    ),
    _review("self review: bad requirements", _SELF, lambda n: _resource(labelSelector={"requirements": [{}] * n})),
    _review(
        "self review: values of a requirement",
        _SELF,
        lambda n: _resource(
            labelSelector={"requirements": [{"key": "a", "operator": "In", "values": [f"v{i}" for i in range(n)]}]}
        ),
    ),
    _review("self review: one long name", _SELF, lambda n: _resource(name="a" * n)),
    _review("self review: one long verb", _SELF, lambda n: _resource(verb="a" * n)),
    _review(
        "self review: one long path", _SELF, lambda n: {"nonResourceAttributes": {"verb": "get", "path": "/a" * n}}
    ),
    _review("self rules review", f"{_AUTHORIZATION}/selfsubjectrulesreviews", lambda n: {"namespace": "a" * n}),
    _review("self subject review", "/apis/authentication.k8s.io/v1/selfsubjectreviews", lambda n: {"a" * n: 1}),
    _review(
        "local review: groups",
        _LOCAL,
        lambda n: {"user": "a", "groups": [f"g{i}" for i in range(n)], **_resource()},
        "editor",
    ),
    _review(
        "local review: extra",
        _LOCAL,
        lambda n: {"user": "a", "extra": {f"g{i}": ["a"] for i in range(n)}, **_resource()},
        "editor",
    ),
    _review("local review: one long user", _LOCAL, lambda n: {"user": "a" * n, **_resource()}, "editor"),
    _review(
        "local review: raw label selector",
        _LOCAL,
        lambda n: {"user": "a", **_resource(labelSelector={"rawSelector": ",".join(f"k{i}" for i in range(n))})},
        "editor",
    ),
    _review(
        "token request: audiences",
        f"{SPACE}/serviceaccounts/default/token",
        lambda n: {"audiences": [f"a{i}" for i in range(n)]},
        "editor",
    ),
    _review(
        "token request: one long audience",
        f"{SPACE}/serviceaccounts/default/token",
        lambda n: {"audiences": ["a" * n]},
        "editor",
    ),
    _review(
        "token request: bound to a long name",
        f"{SPACE}/serviceaccounts/default/token",
        lambda n: {"boundObjectRef": {"kind": "Pod", "name": "a" * n}},
        "editor",
    ),
    _review(
        "token review: long token", "/apis/authentication.k8s.io/v1/tokenreviews", lambda n: {"token": "a" * n}, "admin"
    ),
    _review(
        "token review: long JWT",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        lambda n: {"token": f"eyJhbGciOiJSUzI1NiJ9.{'eyJh' * n}.AAAA"},
        "admin",
    ),
    _review(
        "token review: audiences",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        lambda n: {"token": "user-token", "audiences": [f"a{i}" for i in range(n)]},
        "admin",
    ),
    _review(
        "review of an admin: groups",
        f"{_AUTHORIZATION}/subjectaccessreviews",
        lambda n: {"user": "a", "groups": [f"g{i}" for i in range(n)], **_resource()},
        "admin",
    ),
    Case(
        "certificate signing request: long request",
        "user",
        lambda n: Message(
            "POST",
            "/apis/certificates.k8s.io/v1/certificatesigningrequests",
            body=b'{"spec":{"request":"' + b"QUFB" * n + b'"}}',
        ),
        BODY,
    ),
]
