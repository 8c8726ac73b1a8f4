"""Requests with many errors or huge values: the response lists the first errors, counts the others, and shortens
values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.attacked import Attacked
from support.waiting import until
from support.wire import Answer, Client
from tetrapod.machinery.error_limits import MAX_ERRORS, MAX_MESSAGE, MAX_TEXT

MAPS: Final = "/api/v1/namespaces/default/configmaps"
PODS: Final = "/api/v1/namespaces/default/pods"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS: Final = "/apis/large.example.com/v1/namespaces/default/things"
PATCHES: Final = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
MEGABYTE: Final = "x" * 1_000_000


@pytest.fixture(scope="module")
def things(client: Client) -> Iterator[None]:
    integers = {"type": "array", "items": {"type": "integer"}}
    word = {"type": "string", "enum": [f"{i:0100}" for i in range(5000)]}
    properties = {
        "words": {"type": "array", "items": word},
        "numbers": {"type": "object", "additionalProperties": integers},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "texts": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == 'y'", "messageExpression": "'not ' + self"}],
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "large.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    named = {**definition, "metadata": {"name": "things.large.example.com"}}
    until(lambda: client("POST", DEFINITIONS, named).status == 201, timeout=20)
    until(lambda: client("GET", THINGS).status == 200, timeout=20)
    yield
    client("DELETE", f"{DEFINITIONS}/things.large.example.com")


def config_map(name: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **members}


def thing(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "large.example.com/v1", "kind": "Thing", "metadata": {"name": "large"}, **members}


def assert_bounded(answer: Answer) -> None:
    assert 400 <= answer.status < 500, answer.body[:500]
    assert len(answer.json["message"]) <= MAX_MESSAGE + 100
    assert len(answer.json.get("details", {}).get("causes", ())) <= MAX_ERRORS + 1
    assert len(answer.body) <= 2 * (MAX_MESSAGE + MAX_TEXT)


def test_every_error_of_an_ordinary_request_is_listed(client: Client) -> None:
    answer = client("POST", MAPS, config_map("bad-keys", data={f"bad key {i}": "" for i in range(100)}))
    assert answer.status == 422
    causes = answer.json["details"]["causes"]
    assert [cause["field"] for cause in causes] == [f"data[bad key {i}]" for i in sorted(range(100), key=str)]
    assert answer.json["message"].count("a valid config key must consist") == 100


def test_the_errors_beyond_the_limit_are_counted(client: Client) -> None:
    answer = client("POST", MAPS, config_map("bad-keys", data={f"bad key {i}": "" for i in range(40_000)}))
    assert_bounded(answer)
    causes = answer.json["details"]["causes"]
    rest = f"... and {40_000 - len(causes) + 1:,} more errors"
    assert causes[-1] == {"message": rest}
    assert answer.json["message"].endswith(f", {rest}]")
    assert len(causes) > 100


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MAPS, config_map("m", data={f"{i} {'k' * 200}": "" for i in range(10_000)})),
        (MAPS, config_map("m", data={MEGABYTE: "", MEGABYTE + " ": ""})),
        (MAPS, config_map(MEGABYTE)),
        (MAPS, {"metadata": {"name": "m", "labels": {f"{i}!": "!" * 100 for i in range(20_000)}}}),
        (MAPS, {"metadata": {"name": "m", "annotations": {f"{i} !": "" for i in range(20_000)}}}),
        (MAPS, {"metadata": {"name": "m", "finalizers": [f"{i} !" for i in range(20_000)]}}),
        (MAPS, {"metadata": {"name": "m", "ownerReferences": [{}] * 20_000}}),
        (MAPS, {"metadata": {"name": "m", "namespace": MEGABYTE}}),
        (MAPS, {"kind": MEGABYTE}),
        (MAPS, {"apiVersion": MEGABYTE}),
        (MAPS, {"data": {MEGABYTE: 1}}),
        (MAPS, {"binaryData": {"a": MEGABYTE + "!"}}),
        (PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{}] * 3_000}}),
        (
            PODS,
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "c", "image": MEGABYTE + " ", "ports": [{}] * 3_000}]},
            },
        ),
        (
            PODS,
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "="}] * 20_000}]},
            },
        ),
        (PODS, {"metadata": {"name": "p"}, "spec": {"nodeSelector": {f"{i}!": "!" for i in range(20_000)}}}),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "r"}, "rules": [{}] * 20_000}),
        ("/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 0}] * 20_000}}),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value)[:60],
)
def test_errors_of_built_in_kinds_are_bounded(client: Client, path: str, body: dict[str, Any]) -> None:
    assert_bounded(client("POST", path, body))
    assert_bounded(client("POST", f"{path}?fieldValidation=Strict", body))


@pytest.mark.parametrize(
    "members",
    [
        {"numbers": {"a": ["x"] * 30_000}},
        {"numbers": {MEGABYTE: ["x"] * 20_000}},
        {"words": ["x"] * 20_000},
        {"words": [MEGABYTE] * 2},
        {"set": [str(i // 2) for i in range(30_000)]},
        {"fixed": MEGABYTE},
        {"texts": [{}] * 20_000},
        {"texts": {MEGABYTE: {f"u{i}": 1 for i in range(20_000)}}},
        {f"unknown{i}": 1 for i in range(20_000)},
    ],
    ids=lambda value: repr(value)[:40],
)
@pytest.mark.usefixtures("things")
def test_errors_of_custom_resources_are_bounded(client: Client, members: dict[str, Any]) -> None:
    assert_bounded(client("POST", f"{THINGS}?fieldValidation=Strict", thing(**members)))


def apply() -> dict[str, str]:
    return {"Content-Type": "application/apply-patch+yaml"}


@pytest.mark.parametrize("kind", PATCHES)
def test_a_rejected_patch_quotes_the_beginning_of_a_large_object(client: Client, kind: str) -> None:
    client("POST", MAPS, config_map("quoted", data={"a": MEGABYTE[:900_000]}))
    wrong: Any = config_map("quoted", data={"b": [MEGABYTE]})
    if kind.startswith("json-patch"):
        wrong = [{"op": "add", "path": "/data/b", "value": [MEGABYTE]}]
    assert_bounded(client("PATCH", f"{MAPS}/quoted?fieldManager=f", wrong, {"Content-Type": f"application/{kind}"}))
    client("DELETE", f"{MAPS}/quoted")


def test_conflicts_of_an_apply_beyond_the_limit_are_counted(client: Client) -> None:
    data = {f"key{i}": "a" for i in range(5000)}
    assert client("PATCH", f"{MAPS}/owned?fieldManager=first", config_map("owned", data=data), apply()).status == 201
    answer = client(
        "PATCH", f"{MAPS}/owned?fieldManager=second", config_map("owned", data=dict.fromkeys(data, "b")), apply()
    )
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert_bounded(answer)
    assert answer.json["message"].startswith(
        'Apply failed with 5000 conflicts: conflicts with "first":\n- .data.key0\n'
    )
    assert answer.json["message"].endswith("\n... and 4,000 more conflicts")
    assert answer.json["details"]["causes"][-1] == {"message": "... and 4,000 more conflicts"}
    client("DELETE", f"{MAPS}/owned")


def test_duplicate_keys_of_yaml_beyond_the_limit_are_counted(client: Client) -> None:
    body = b"metadata: {name: doubled}\ndata:\n" + b"  a: b\n" * 20_000
    answer = client("POST", f"{MAPS}?fieldValidation=Strict", body, {"Content-Type": "application/yaml"})
    assert_bounded(answer)
    assert "more errors" in answer.json["message"]


@pytest.mark.parametrize("token", ["admin-token", "alice-token"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "PUT"])
def test_giant_names_are_shortened(server: Attacked, token: str, method: str, http2: bool) -> None:
    name = "n" * 500_000
    for path in (
        f"{MAPS}/{name}",
        f"/api/v1/namespaces/{name}/configmaps",
        f"/api/v1/{name}",
        f"/apis/{name}/v1/x",
        f"/{name}",
    ):
        with Client(server, token, http2=http2) as client:
            answer = client(method, path, json.dumps(config_map(name)).encode() if method in ("POST", "PUT") else None)
        assert answer.status < 500
        assert len(answer.body) < MAX_MESSAGE + 10_000, answer.body[:300]
