"""Values that nest deeply: every verb and media type accepts them up to one limit and rejects them beyond it, never
with a 500.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from support.waiting import until
from support.wire import Answer, Client
from tetrapod.machinery.depth import MAX_DEPTH

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS: Final = "/apis/deep.example.com/v1/namespaces/default/things"
REVISIONS: Final = "/apis/apps/v1/namespaces/default/controllerrevisions"
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.deep.example.com"},
    "spec": {
        "group": "deep.example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "All", "type": "string", "jsonPath": ".spec..a"}],
            }
        ],
    },
}
ACCEPTED: Final = MAX_DEPTH - 6
"""Levels below `spec` of an object that can be read, changed and written back: its managedFields nest five levels
deeper.
"""


@pytest.fixture(scope="module")
def things(client: Client) -> Iterator[None]:
    until(lambda: client("POST", DEFINITIONS, DEFINITION).status == 201, timeout=20)
    until(lambda: client("GET", THINGS).status == 200, timeout=20)
    yield
    client("DELETE", f"{DEFINITIONS}/things.deep.example.com")


def objects(levels: int, leaf: str = "1") -> str:
    return '{"a":' * levels + leaf + "}" * levels


def lists(levels: int, leaf: str = "1") -> str:
    return "[" * levels + leaf + "]" * levels


def thing(name: str, spec: str) -> bytes:
    return (
        f'{{"apiVersion":"deep.example.com/v1","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{spec}}}'.encode()
    )


def patch(client: Client, path: str, kind: str, body: Any) -> Answer:
    return client("PATCH", path, body, {"Content-Type": f"application/{kind}"})


@pytest.mark.parametrize("nested", [objects, lists])
@pytest.mark.usefixtures("things")
def test_an_object_at_the_limit_can_be_written_and_read_in_every_way(
    client: Client, nested: Callable[..., str]
) -> None:
    name = f"at-the-limit-{nested.__name__}"
    path = f"{THINGS}/{name}"
    assert client("POST", THINGS, thing(name, nested(ACCEPTED))).status == 201
    read = client("GET", path)
    assert client("PUT", path, read.body.replace(b":1}", b":2}")).status == 200
    assert patch(client, path, "merge-patch+json", f'{{"spec":{nested(ACCEPTED, "3")}}}'.encode()).status == 200
    operation = f'[{{"op":"replace","path":"/spec","value":{nested(ACCEPTED, "4")}}}]'
    assert patch(client, path, "json-patch+json", operation.encode()).status == 200
    assert (
        patch(
            client, f"{path}?fieldManager=f&force=true", "apply-patch+yaml", thing(name, nested(ACCEPTED, "5"))
        ).status
        == 200
    )
    assert patch(client, f"{path}?fieldManager=g", "apply-patch+yaml", thing(name, nested(ACCEPTED, "6"))).status == 409
    for accept in ("application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"):
        for where in (path, THINGS):
            assert client("GET", where, headers={"Accept": accept}).status == 200
    assert client("DELETE", path).status == 200


@pytest.mark.parametrize(
    "levels", [ACCEPTED + 1, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 249, 254, 255, 300, 900, 3000, 50_000]
)
@pytest.mark.parametrize("nested", [objects, lists])
@pytest.mark.usefixtures("things")
def test_deeper_values_are_accepted_or_rejected_without_an_internal_error(
    client: Client, nested: Callable[..., str], levels: int
) -> None:
    deep = nested(levels)
    created = client("POST", THINGS, thing("deeper", deep)).status
    path = f"{THINGS}/deeper"
    client("POST", THINGS, thing("deeper", "{}"))
    client("POST", REVISIONS, {"metadata": {"name": "deeper"}, "revision": 1, "data": {}})
    body = f'{{"spec":{deep},"status":{deep},"data":{deep}}}'
    patches = [
        ("merge-patch+json", body),
        ("strategic-merge-patch+json", body),
        *(
            ("json-patch+json", f'[{{"op":"{operation}","path":"/spec","value":{deep}}}]')
            for operation in ("add", "replace", "test")
        ),
        ("apply-patch+yaml", thing("deeper", deep).decode()),
    ]
    puts = [
        client("PUT", path, thing("deeper", deep), {"Content-Type": f"application/{kind}"}) for kind in ("json", "yaml")
    ]
    answers = [
        patch(
            client, f"{where}?fieldManager=f" + ("&force=true" if kind.startswith("apply") else ""), kind, text.encode()
        )
        for where in (path, f"{path}/status", f"{REVISIONS}/deeper")
        for kind, text in patches
    ]
    for read in (path, f"{REVISIONS}/deeper"):
        assert client("GET", read).status == 200
    deleted = client("DELETE", path, deep.encode()).status
    client("DELETE", path)
    client("DELETE", f"{REVISIONS}/deeper")
    statuses = [answer.status for answer in (*puts, *answers)]
    assert all(status < 500 for status in (created, deleted, *statuses)), statuses
    assert levels < MAX_DEPTH or all(status >= 400 for status in statuses), statuses


def deepened(times: int) -> list[dict[str, Any]]:
    """Operations of which each puts the object into a new one."""
    step: list[Any] = [
        {"op": "move", "from": "/spec", "path": "/held"},
        {"op": "add", "path": "/spec", "value": {}},
        {"op": "move", "from": "/held", "path": "/spec/a"},
    ]
    return [{"op": "add", "path": "/spec", "value": {}}, *(step * times)]


@pytest.mark.parametrize(
    "operations",
    [
        deepened(MAX_DEPTH),
        deepened(3000),
        [*deepened(3000), {"op": "copy", "from": "/spec", "path": "/again"}],
        [
            *deepened(600),
            {"op": "copy", "from": "/spec", "path": "/again"},
            {"op": "test", "path": "/spec", "value": {}},
        ],
        [
            {"op": "replace", "path": "/spec", "value": {}},
            *({"op": "add", "path": "/spec" + "/a" * i, "value": {}} for i in range(1, 400)),
        ],
    ],
    ids=["moves", "thousands-of-moves", "copy-of-a-deep-value", "test-of-a-deep-value", "adds"],
)
@pytest.mark.usefixtures("things")
def test_a_json_patch_that_nests_too_deeply_is_rejected(client: Client, operations: list[dict[str, Any]]) -> None:
    client("POST", THINGS, thing("nested", "{}"))
    answer = patch(client, f"{THINGS}/nested", "json-patch+json", operations)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


@pytest.mark.usefixtures("things")
def test_an_object_cannot_grow_deeper_by_many_json_patches(client: Client) -> None:
    client("POST", THINGS, thing("growing", "{}"))
    seen = {patch(client, f"{THINGS}/growing", "json-patch+json", deepened(40)[1:]).status for _ in range(8)}
    assert seen == {200, 422}


@pytest.mark.parametrize("levels", [100, MAX_DEPTH - 5, MAX_DEPTH, 400])
def test_managed_fields_of_any_depth_are_accepted_or_rejected(client: Client, levels: int) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    fields = json.loads('{"f:a":' * levels + "{}" + "}" * levels)
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed", "managedFields": [entry]}}
    assert client("POST", maps, body).status in (201, 400)
    assert patch(client, f"{maps}/managed", "merge-patch+json", {"metadata": {"managedFields": [entry]}}).status in (
        200,
        400,
        404,
    )
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed"}, "data": {"b": "c"}}
    assert patch(client, f"{maps}/managed?fieldManager=f&force=true", "apply-patch+yaml", applied).status in (200, 201)
    for accept in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
        assert client("GET", f"{maps}/managed", headers={"Accept": accept}).status == 200
    assert client("DELETE", f"{maps}/managed").status == 200
