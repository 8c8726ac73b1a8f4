"""Tests of the parts of an audit event: times, addresses, the legacy log line, and the objects it contains."""

from __future__ import annotations

import gzip
import os

import orjson
import pytest

from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.event import Event, legacy_line, micro_time
from tetrapod.generic.audit.objects import compact_json, encoded, response_object, status_in
from tetrapod.generic.audit.peer_audit import parse_request_header, response_header
from tetrapod.generic.audit.policy import Auditing, Level
from tetrapod.generic.audit.request_fields import source_addresses
from tetrapod.generic.http.request import Request, Response
from tetrapod.machinery import protobuf

MANAGED = [{"manager": "m"}]
JSON = [(b"content-type", b"application/json")]


@pytest.mark.parametrize(
    ("headers", "remote", "expected"),
    [
        ([], "127.0.0.1", ["127.0.0.1"]),
        (
            [(b"x-forwarded-for", b"1.2.3.4, bad, 010.1.1.1, ::1"), (b"x-real-ip", b"5.6.7.8")],
            "127.0.0.1",
            ["1.2.3.4", "10.1.1.1", "::1", "5.6.7.8", "127.0.0.1"],
        ),
        ([(b"x-forwarded-for", b"1.2.3.4"), (b"x-real-ip", b"1.2.3.4")], "1.2.3.4", ["1.2.3.4"]),
        ([(b"x-forwarded-for", b"::ffff:1.2.3.4, fe80::1%eth0, 1.2.3")], "", ["1.2.3.4"]),
    ],
)
def test_source_addresses_are_those_of_upstream(
    headers: list[tuple[bytes, bytes]], remote: str, expected: list[str]
) -> None:
    request = Request("GET", "/", headers=headers)
    request.remote = remote
    assert source_addresses(request) == expected


def test_times_have_six_digits() -> None:
    assert micro_time(0.5) == "1970-01-01T00:00:00.500000Z"
    assert micro_time(1700000000) == "2023-11-14T22:13:20.000000Z"


def _event(**more: object) -> Event:
    document = {
        "auditID": "id",
        "stage": "RequestReceived",
        "verb": "get",
        "requestURI": "/a?b&c",
        "level": "Metadata",
        "user": {},
    }
    return Event({**document, "requestReceivedTimestamp": "2026-01-02T03:04:05.120000Z", **more})


def test_the_legacy_line_is_upstreams() -> None:
    plain = (
        '2026-01-02T03:04:05.12Z AUDIT: id="id" stage="RequestReceived" ip="<unknown>" method="get" user="<none>" '
        'groups="<none>" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" uri="/a?b&c" '
        'response="<deferred>"'
    )
    assert legacy_line(_event()) == plain
    full = legacy_line(
        _event(
            user={"username": "u", "groups": ["a", "b"]},
            impersonatedUser={"username": "v", "groups": ["c"]},
            sourceIPs=["1.2.3.4", "5.6.7.8"],
            userAgent='x"y',
            objectRef={"namespace": "ns"},
            responseStatus={"code": 404},
        )
    )
    assert (
        'ip="1.2.3.4" method="get" user="u" groups="\\"a\\",\\"b\\"" as="v" asgroups="\\"c\\"" '
        'user-agent="x\\"y" namespace="ns"'
    ) in full
    assert full.endswith('response="404"')


def test_lines_are_escaped_as_go_does_and_texts_that_are_no_utf8_do_not_lose_them() -> None:
    line = _event(user={"username": "<\udcff\u2028"}).line()
    assert line.startswith(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID"') and line.count(b"\n") == 1
    assert b"/a?b\\u0026c" in line and b"\\u003c" in line and b"\\u2028" in line
    assert orjson.loads(line)["requestURI"] == "/a?b&c"


def test_a_truncated_event_keeps_its_metadata() -> None:
    event = _event(requestObject=orjson.Fragment(b"{}"), responseObject=orjson.Fragment(b"{}"), annotations={"a": "b"})
    assert orjson.loads(event.without_objects().line()) | {"kind": "", "apiVersion": ""} == {
        **_event().document,
        "annotations": {"a": "b", "audit.k8s.io/truncated": "true"},
        "kind": "",
        "apiVersion": "",
    }
    assert "audit.k8s.io/truncated" not in event.document["annotations"]


def test_managed_fields_are_left_out_of_objects_lists_and_tables() -> None:
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "managedFields": MANAGED}}
    assert orjson.loads(encoded(obj, omit_managed_fields=True))["metadata"] == {"name": "a"}
    assert obj["metadata"] == {"name": "a", "managedFields": MANAGED}  # it goes on to be stored
    listed = {"kind": "ConfigMapList", "metadata": {}, "items": [obj]}
    table = {"kind": "Table", "metadata": {}, "rows": [{"cells": [], "object": obj}, {"cells": [], "object": None}]}
    for document in (obj, listed, table):
        body = orjson.dumps(document)
        assert b"managedFields" in response_object(Response(200, JSON), body, omit_managed_fields=False)
        kept = response_object(Response(200, JSON), body, omit_managed_fields=True)
        assert b"managedFields" not in kept and b'"name":"a"' in kept


@pytest.mark.parametrize("form", ["json", "indented", "yaml", "protobuf", "gzip"])
def test_an_answer_in_any_form_is_shown_as_json(form: str) -> None:
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}}
    headers = [(b"content-type", b"application/json")]
    body = orjson.dumps(obj) + b"\n"
    if form == "indented":
        body = orjson.dumps(obj, option=orjson.OPT_INDENT_2)
    elif form == "yaml":
        headers, body = (
            [(b"content-type", b"application/yaml")],
            b"apiVersion: v1\nkind: ConfigMap\ndata: {k: v}\nmetadata: {name: a}\n",
        )
    elif form == "protobuf":
        headers, body = [(b"content-type", b"application/vnd.kubernetes.protobuf")], protobuf.encode(obj)
    elif form == "gzip":
        headers, body = [*headers, (b"content-encoding", b"gzip")], gzip.compress(body)
    shown = response_object(Response(200, headers), body, omit_managed_fields=False)
    assert orjson.loads(shown) == obj and b"\n" not in shown


def test_plain_text_is_not_an_object() -> None:
    assert (
        response_object(
            Response(404, [(b"content-type", b"text/plain; charset=utf-8")]), b"404\n", omit_managed_fields=False
        )
        == b""
    )


def test_a_status_is_found_in_an_answer() -> None:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    assert status_in(Response(200, JSON), orjson.dumps(status)) == status
    assert (
        status_in(Response(200, [(b"content-type", b"application/vnd.kubernetes.protobuf")]), protobuf.encode(status))
        == status
    )
    assert status_in(Response(200, JSON), b'{"kind":"Pod","apiVersion":"v1","status":{"kind":"Status"}}') is None


def test_patches_become_one_line() -> None:
    assert compact_json(b'{ "a" : [1,\n2] }') == b'{"a":[1,2]}'
    assert b"\n" not in compact_json(b'{"a":\n 123456789012345678901234567890}')


def test_the_audit_level_that_a_front_proxy_requests_is_parsed() -> None:
    assert parse_request_header("Request; omit-managed-fields") == Auditing(Level.REQUEST, omit_managed_fields=True)
    assert parse_request_header("Metadata") == Auditing(Level.METADATA)
    assert parse_request_header("everything") is None


async def test_a_peer_sends_nothing_if_annotations_alone_exceed_the_header() -> None:
    request = Request("GET", "/")
    request.annotations["a"] = os.urandom(600 * 1024).hex()  # it cannot be compressed below the limit
    context = AuditContext(request, Auditing(Level.METADATA), None, None)
    assert await response_header(context) == []
