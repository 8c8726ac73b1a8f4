"""Tests of content negotiation by Accept and Content-Type headers, with results recorded from a real server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.http.negotiation.accept import (
    DEFAULT_OFFER,
    JSON,
    PROTOBUF,
    YAML,
    Accepted,
    Offer,
    choose,
    parse_accept,
    parse_media_type,
)
from tetrapod.generic.http.negotiation.documents import write_status
from tetrapod.generic.http.negotiation.media_types import check_route_accept, negotiate
from tetrapod.generic.http.request import Request
from tetrapod.machinery.status import StatusError, not_acceptable, too_many_requests

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", Accepted()),
        ("*/*", Accepted()),
        ("application/yaml;q=0.5,application/json;q=0.9", Accepted(JSON)),
        ("application/json;q=0,application/yaml", Accepted(YAML)),
        ("application/json;q=0", Accepted(JSON)),
        ("text/html;q=1,application/json;q=abc", Accepted(JSON)),
        ("application/vnd.kubernetes.protobuf,application/json", Accepted(PROTOBUF)),
        ("application/json;stream=watch", Accepted(JSON)),
        ("application/json;stream=nope", None),
        ("application/json;stream= ;sv= ", Accepted(JSON)),
        ("application/json;stream=nope;stream=watch", Accepted(JSON)),
        ("application/json;stream=watch;stream=nope", None),
        ("application/yaml;stream=watch", None),
        ("application/json;sv=v1", Accepted(JSON)),
        ("application/json;sv=v2,application/yaml", Accepted(YAML)),
        ("application/json;pretty=1", Accepted(JSON, pretty=True)),
        (TABLE, Accepted(JSON, "Table")),
        (f"application/json;as=Table;v=v9;g=meta.k8s.io,{JSON}", Accepted(JSON)),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", None),
        ("application/json;as=Table", None),
        (
            "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
            Accepted(YAML, "PartialObjectMetadata", "v1beta1"),
        ),
        ("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", None),
        ("application/json ; as=Table; v=v1 ; g=meta.k8s.io", Accepted(JSON, "Table")),
        ("application/json;\tas=Table;v=v1;g=meta.k8s.io", None),
        ("application/json\t;as=Table;v=v1;g=meta.k8s.io", None),
        ("application/json; q= 1,application/yaml;q=0.1", Accepted(YAML)),
        ("garbage;;,;/", None),
    ],
)
def test_the_best_clause_that_can_be_given_wins(header: str, wanted: Accepted | None) -> None:
    assert choose(header, DEFAULT_OFFER) == wanted


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("*/*;q=0.9,application/json;q=0.1", ["application/json", "*/*"]),
        ("application/json;q=0.1,*/*;q=0.9", ["*/*", "application/json"]),
        ("a/b;q=0.1,c/d,e/*", ["c/d", "e/*", "a/b"]),
    ],
)
def test_clauses_of_accept_are_sorted_as_by_upstreams_inconsistent_rule(header: str, wanted: list[str]) -> None:
    assert [f"{clause.type}/{clause.subtype}" for clause in parse_accept(header)] == wanted


def test_an_endpoint_without_tables_rejects_them() -> None:
    assert choose(TABLE, Offer(table=False)) is None


@pytest.mark.parametrize("header", ["application/*", "*/json", "text/html", "APPLICATION/JSON", "json"])
def test_the_router_rejects_what_no_route_produces(header: str) -> None:
    with pytest.raises(StatusError) as rejected:
        check_route_accept(Request("GET", "/", headers=[(b"accept", header.encode())]))
    assert rejected.value.code == 406
    assert rejected.value.details == {}
    assert rejected.value.message.startswith("406: Not Acceptable\n\nAvailable representations: application/json, ")


@pytest.mark.parametrize(
    "header", ["application/json,", "text/html,application/xml;q=0.9,*/*;q=0.8", "application/json;charset=utf-8;x=y"]
)
def test_the_router_passes_what_some_clause_matches(header: str) -> None:
    check_route_accept(Request("GET", "/", headers=[(b"accept", header.encode())]))


@pytest.mark.parametrize(
    ("header", "media_type"),
    [
        ("application/json; charset=utf-8", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ('application/json; a="b;c"; d=e', "application/json"),
        ("application/json;q", ""),
        ("application/json;q=1;q=2", ""),
        ("*/*", "*/*"),
        ("", ""),
    ],
)
def test_content_types_are_parsed_as_strictly_as_go_does(header: str, media_type: str) -> None:
    assert parse_media_type(header) == media_type


@given(st.text())
def test_no_header_breaks_the_parsers(header: str) -> None:
    parse_accept(header)
    parse_media_type(header)
    choose(header, DEFAULT_OFFER)


@pytest.mark.parametrize("agent", ["curl/8.0", "Mozilla/5.0 (X11)"])
def test_people_get_indented_json_unless_they_say_otherwise(agent: str) -> None:
    headers = [(b"user-agent", agent.encode())]
    assert negotiate(Request("GET", "/", headers=headers)).pretty
    assert not negotiate(Request("GET", "/", query_string="pretty=false", headers=headers)).pretty


def test_rejections_come_in_the_accepted_type_and_say_when_to_retry() -> None:
    answer = write_status(
        Request("GET", "/", headers=[(b"accept", b"application/yaml")]), too_many_requests("later", 7)
    )
    assert answer.status == 429
    assert (b"content-type", b"application/yaml") in answer.headers
    assert (b"retry-after", b"7") in answer.headers
    assert b"reason: TooManyRequests" in answer.body


def test_rejections_fall_back_to_json() -> None:
    answer = write_status(Request("GET", "/", headers=[(b"accept", TABLE.encode())]), not_acceptable("no"))
    assert (b"content-type", b"application/json") in answer.headers
