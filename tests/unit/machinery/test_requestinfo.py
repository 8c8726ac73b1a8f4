"""Tests of the parsing of request paths, which follows upstream also for unusual paths."""

from __future__ import annotations

import pytest

from tetrapod.machinery.requestinfo import RequestInfo, UnknownRequestError, parse


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
def test_paths_of_resources_are_parsed(request_line: str, expected: tuple[str, ...]) -> None:
    method, path = request_line.split(" ")
    info = parse(method, path)
    assert info.is_resource_request
    assert short(info) == expected


@pytest.mark.parametrize(
    "path", ["/", "//", "/api", "/api/v1/", "/apis/apps/v1/", "/API/v1/pods", "/healthz", "/logs/a/b/c"]
)
def test_other_requests_have_their_method_as_verb(path: str) -> None:
    info = parse("PROPFIND", path)
    assert not info.is_resource_request
    assert (info.verb, info.path) == ("propfind", path)


@pytest.mark.parametrize(
    ("query", "verb"),
    [
        ("watch", "watch"),
        ("watch=", "watch"),
        ("watch=x", "watch"),
        ("watch=FALSE", "list"),
        ("watch=0", "list"),
        ("%77atch=1", "watch"),
    ],
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


def test_a_path_that_ends_at_watch_is_rejected() -> None:
    with pytest.raises(UnknownRequestError, match="unable to determine kind and namespace from url, /api/v1/watch/"):
        parse("GET", "/api/v1/watch/")


def test_the_name_in_an_overlong_selector_does_not_count() -> None:
    """The name would be parsed from the query before authorization, but the request is authorized as a list."""
    padding = ",".join(f"metadata.name!=other-{i}" for i in range(1000))
    assert parse("GET", "/api/v1/pods", "fieldSelector=metadata.name%3Dx").name == "x"
    assert parse("GET", "/api/v1/pods", f"fieldSelector=metadata.name%3Dx,{padding}").name == ""


def test_selectors_of_one_request_are_not_those_of_the_next_for_the_same_path() -> None:
    path = "/api/v1/namespaces/default/pods"
    watch = parse("GET", path, "watch=1&fieldSelector=metadata.name%3Da&labelSelector=x%3Dy")
    assert (watch.verb, watch.name, watch.field_selector, watch.label_selector) == (
        "watch",
        "a",
        "metadata.name=a",
        "x=y",
    )
    plain = parse("GET", path)
    assert (plain.verb, plain.name, plain.field_selector, plain.label_selector) == ("list", "", "", "")


def test_a_method_named_like_a_verb_reads_no_selectors() -> None:
    info = parse("LIST", "/version", "labelSelector=x%3Dy")
    assert (info.verb, info.label_selector) == ("list", "")


def test_requests_of_one_path_share_parts_that_cannot_be_changed() -> None:
    shared = parse("GET", "/api/v1/pods")
    assert parse("GET", "/api/v1/pods") is shared
    with pytest.raises(AttributeError):
        shared.verb = "watch"  # type: ignore[misc]
    watch = parse("GET", "/api/v1/pods", "watch=1&fieldSelector=metadata.name%3Da")
    assert (watch.verb, watch.name) == ("watch", "a")
    assert (shared.verb, shared.name) == ("list", "")
