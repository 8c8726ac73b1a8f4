"""Paths are taken apart exactly as upstream does, odd ones included."""

from __future__ import annotations

import pytest

from tetrapod.machinery.requestinfo import RequestInfo, UnknownRequestError, encoded_query, parse, query_lists, query_pairs, query_values


def short(info: RequestInfo) -> tuple[str, ...]:
    return (info.verb, info.api_group, info.api_version, info.namespace, info.resource, info.name, info.subresource)


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("GET /api/v1/namespaces", ("list", "", "v1", "", "namespaces", "", "")),
        ("GET /api/v1/namespaces/x", ("get", "", "v1", "x", "namespaces", "x", "")),
        ("PUT /api/v1/namespaces/x/finalize", ("update", "", "v1", "x", "namespaces", "x", "finalize")),
        ("GET /api/v1/namespaces/x/pods", ("list", "", "v1", "x", "pods", "", "")),
        ("GET /api/v1/pods/x", ("get", "", "v1", "", "pods", "x", "")),
        ("GET /api/v1/namespaces//pods", ("list", "", "v1", "", "pods", "", "")),
        ("GET /api/v1/namespaces/x/pods/y/log/z/a", ("get", "", "v1", "x", "pods", "y", "log")),
        ("POST /api/v1/namespaces/x/pods/y/exec", ("create", "", "v1", "x", "pods", "y", "exec")),
        ("GET /apis/apps/v1/namespaces/x/deployments/y/scale", ("get", "apps", "v1", "x", "deployments", "y", "scale")),
        ("GET //api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        ("GET /api//v1/pods", ("get", "", "", "", "v1", "pods", "")),
        ("GET /api/v1//pods", ("get", "", "v1", "", "", "pods", "")),
        ("GET /api/v1/namespaces/../nodes", ("list", "", "v1", "..", "nodes", "", "")),
        ("GET /api/../api/v1/pods", ("get", "", "..", "", "api", "v1", "pods")),
        ("PROPFIND /api/v1/pods", ("", "", "v1", "", "pods", "", "")),
        ("HEAD /api/v1/pods/x", ("get", "", "v1", "", "pods", "x", "")),
        ("DELETE /api/v1/pods", ("deletecollection", "", "v1", "", "pods", "", "")),
        ("GET /api/v1/watch/namespaces/x/pods/y", ("watch", "", "v1", "x", "pods", "y", "")),
        ("GET /api/v1/proxy/nodes/x/a", ("proxy", "", "v1", "", "nodes", "x", "")),
    ],
)
def test_resource_requests(request_line: str, expected: tuple[str, ...]) -> None:
    method, path = request_line.split(" ")
    info = parse(method, path)
    assert info.is_resource_request
    assert short(info) == expected


@pytest.mark.parametrize("path", ["/", "//", "/api", "/api/v1/", "/apis/apps/v1/", "/API/v1/pods", "/healthz", "/logs/a/b/c"])
def test_other_requests_have_their_method_as_verb(path: str) -> None:
    info = parse("PROPFIND", path)
    assert not info.is_resource_request
    assert (info.verb, info.path) == ("propfind", path)


@pytest.mark.parametrize(
    ("query", "verb"),
    [("watch", "watch"), ("watch=", "watch"), ("watch=x", "watch"), ("watch=FALSE", "list"), ("watch=0", "list"), ("%77atch=1", "watch")],
)
def test_watch_is_on_for_all_but_false_and_zero(query: str, verb: str) -> None:
    assert parse("GET", "/api/v1/pods", query).verb == verb
    assert parse("GET", "/api/v1/namespaces/a/pods/b", query).verb == "get"


def test_a_list_of_one_name_is_about_that_name() -> None:
    query = "fieldSelector=metadata.name%3Dx"
    assert parse("GET", "/api/v1/pods", query).name == "x"
    assert parse("GET", "/api/v1/pods", f"watch=1&{query}").name == "x"
    assert parse("GET", "/api/v1/pods", f"{query}&limit=x").name == ""
    assert parse("GET", "/api/v1/pods", "fieldSelector=metadata.name%21%3Dx").name == ""
    deletion = parse("DELETE", "/api/v1/pods", query)
    assert (deletion.name, deletion.field_selector) == ("", "metadata.name=x")


def test_a_path_that_ends_at_watch_is_refused() -> None:
    with pytest.raises(UnknownRequestError, match="unable to determine kind and namespace from url, /api/v1/watch/"):
        parse("GET", "/api/v1/watch/")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a=1&b=%3B", [("a", "1"), ("b", ";")]),
        ("a=1;b=2&c=3", [("c", "3")]),
        ("a=%zz&b=%4&c=%41", [("c", "A")]),
        ("a&a=1&=x", [("a", ""), ("a", "1"), ("", "x")]),
    ],
)
def test_parameters_that_go_does_not_read_are_dropped(query: str, expected: list[tuple[str, str]]) -> None:
    assert query_pairs(query) == expected


def test_values_are_first_ones_or_all() -> None:
    query = "a=1&b=&a=2;x&a=3&%zz=4&b=5"
    assert query_values(query) == {"a": "1", "b": ""}
    assert query_lists(query) == {"a": ["1", "3"], "b": ["", "5"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ""),
        ("b=2&a=1&a=0&c=%20x+y&d&e=%zz;f=1&=3", "=3&a=1&a=0&b=2&c=+x+y&d="),
        ("x=a%2Fb:c,d!*'()~-._", "x=a%2Fb%3Ac%2Cd%21%2A%27%28%29~-._"),
        ("a=%ff%00&&b==c", "a=%FF%00&b=%3Dc"),
    ],
)
def test_a_query_is_written_anew_as_go_does(query: str, expected: str) -> None:
    assert encoded_query(query) == expected
