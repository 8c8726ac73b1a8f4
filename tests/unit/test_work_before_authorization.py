"""Tests that the work for a request before its authorization takes linear time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from support.growth import assert_linear
from tetrapod.generic.authentication.bearer import bearer_token
from tetrapod.generic.authentication.requestheader import extra_key
from tetrapod.generic.authorization.selector_attributes import requirements_of
from tetrapod.generic.filters.impersonation import requested_user
from tetrapod.generic.http.limits import excess
from tetrapod.generic.http.negotiation.accept import DEFAULT_OFFER, choose, parse_media_type
from tetrapod.generic.http.request import HeaderList, Request
from tetrapod.generic.http.request_target import parse_target
from tetrapod.generic.observability.tracing.trace_endpoint import asked_form, without_parameter
from tetrapod.generic.proxy.headers import pass_through_headers
from tetrapod.machinery import field_selectors, labels, requestinfo
from tetrapod.machinery.golang.durations import parse_duration
from tetrapod.machinery.status import StatusError


def _request(path: str = "/api/v1/pods", query: str = "", headers: HeaderList | None = None) -> Request:
    request = Request("GET", path, query_string=query, headers=headers)
    request.info = requestinfo.parse("GET", path, query)
    return request


def _extra(count: int, *, distinct: bool = False) -> HeaderList:
    return [(b"impersonate-user", b"u"), *((b"impersonate-extra-%d" % (i * distinct), b"v") for i in range(count))]


_WORK: Final[dict[str, tuple[Callable[[Any], object], Callable[[int], Any]]]] = {
    "target of escapes": (parse_target, lambda size: b"/" + b"%22" * size),
    "target of stray bytes": (parse_target, lambda size: b"/" + b"%ff" * size),
    "path of slashes": (_request, lambda size: "/api/v1" + "/" * size),
    "list with many parameters": (
        lambda query: _request(query=query),
        lambda size: "watch=0&" + "a=%20&" * min(size, 9000),
    ),
    "trace": (lambda query: asked_form(Request("GET", "/", query_string=query)), lambda size: "&" * size + "trace=1"),
    "trace taken out": (without_parameter, lambda size: "trace=1&" * size),
    "timeout": (parse_duration, lambda size: "1ns" * size),
    "timeout of digits": (parse_duration, lambda size: "1" * size),
    "Accept": (lambda header: choose(header, DEFAULT_OFFER), lambda size: "a/b," * size),
    "Accept parameters": (lambda header: choose(header, DEFAULT_OFFER), lambda size: "a/b" + ";c=d" * size),
    "Content-Type": (parse_media_type, lambda size: "a/b" + ";c=d" * size),
    "Authorization": (bearer_token, lambda size: "Bearer" + " a" * size),
    "impersonated extra values": (lambda headers: requested_user(_request(headers=headers)), _extra),
    "impersonated extra keys": (
        lambda headers: requested_user(_request(headers=headers)),
        lambda size: _extra(size, distinct=True),
    ),
    "extra key": (extra_key, lambda size: "%41" * size),
    "headers to a backend": (
        lambda headers: pass_through_headers(headers, ""),
        lambda size: [(b"connection", b"a,b" * 9)] * size,
    ),
    "limits": (lambda headers: excess(b"/", headers), lambda size: [(b"a", b"b")] * size),
    "label selector of keys": (labels.parse, lambda size: ",".join(f"k{i}" for i in range(size // 4))),
    "label selector of values": (labels.parse, lambda size: f"a in ({','.join(f'v{i}' for i in range(size // 4))})"),
    "label selector of bad values": (
        labels.parse,
        lambda size: f"a in ({','.join(f'_{i}' for i in range(size // 4))})",
    ),
    "label selector of one key": (labels.parse, lambda size: "a-" * size),
    "label selector of one prefix": (labels.parse, lambda size: "a.a" * size + "/x"),
    "field selector": (field_selectors.parse, lambda size: ",".join(f"k{i}=v" for i in range(size // 4))),
    "field selector of one name": (field_selectors.parse, lambda size: "k" * size),
    "field selector of escapes": (field_selectors.parse, lambda size: "k=" + "\\," * size),
    "field selector of bad escapes": (field_selectors.parse, lambda size: "k=" + "a" * size + "\\"),
}


@pytest.mark.parametrize("name", _WORK)
def test_work_takes_linear_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("labels.parser.MOST_TERMS", "field_selectors.MOST_TERMS"):  # they would hide how parsing grows
        monkeypatch.setattr(f"tetrapod.machinery.{limit}", 1 << 30)
    assert_linear(*_WORK[name], errors=(StatusError, ValueError))


def test_selectors_are_parsed_when_an_authorizer_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = labels.parse

    def recorded(text: str) -> Any:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(labels, "parse", recorded)
    _, requirements = requirements_of(requestinfo.parse("GET", "/api/v1/pods", "labelSelector=a%3Db,c"))
    assert parsed == []
    assert list(requirements) == [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "Exists"}]
    assert parsed == ["a=b,c"]


@pytest.mark.parametrize(("parse", "term"), [(labels.parse, "k{}"), (field_selectors.parse, "k{}=v")])
def test_a_selector_has_a_limit_of_terms(parse: Callable[[str], object], term: str) -> None:
    terms = [term.format(number) for number in range(4097)]
    parse(",".join(terms[:4096]))
    with pytest.raises(ValueError, match="more than 4096"):
        parse(",".join(terms))
