"""OpenAPI documents without enum values, without the gate OpenAPIEnums.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.definitions import definition
from support.forms import FORMS, serving
from support.https_client import HttpsClient, Reply, created

OFF: Final = "--feature-gates=OpenAPIEnums=false"
V2: Final = "/openapi/v2"
PREFIX: Final = "io.k8s.api.core.v1."


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), OFF) as client:
        client.until(lambda reply: reply.status == 200, "GET", "/readyz", timeout=30)
        yield client


def enums(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of lists of enum values, and of descriptions that list them, in schemas."""
    if isinstance(value, dict):
        if isinstance(value.get("enum"), list):
            yield path
        if "Possible enum values" in str(value.get("description", "")):
            yield path
        for key, child in value.items():
            yield from enums(child, (*path, key))


def schemas(client: HttpsClient, path: str) -> dict[str, Any]:
    document = client.until(lambda reply: reply.status == 200, "GET", path, timeout=60).body
    found: dict[str, Any] = document["definitions"] if path == V2 else document["components"]["schemas"]
    return found


@pytest.mark.parametrize("path", [V2, "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/batch/v1"])
def test_schemas_of_built_in_types_have_no_enum_values(client: HttpsClient, path: str) -> None:
    found = schemas(client, path)
    assert f"{PREFIX}PodSpec" in found
    assert list(enums(found)) == []


def test_the_meanings_of_values_are_cut_off_from_descriptions(client: HttpsClient) -> None:
    protocol = schemas(client, V2)[f"{PREFIX}ContainerPort"]["properties"]["protocol"]
    text = 'Protocol for port. Must be UDP, TCP, or SCTP. Defaults to "TCP".'
    assert protocol in ({"type": "string"}, {"description": text, "type": "string"})  # not each build has descriptions
    modes = schemas(client, "/openapi/v3/api/v1")[f"{PREFIX}PersistentVolumeSpec"]["properties"]["accessModes"]
    assert modes["items"] == {"type": "string"}


def test_custom_resources_keep_their_enum_values(client: HttpsClient) -> None:
    body = definition("example.com", "Widget")
    schema = {"type": "object", "properties": {"size": {"type": "string", "enum": ["small", "large"]}}}
    for version in body["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": schema}
    created(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    version = body["spec"]["versions"][0]["name"]

    def published(reply: Reply) -> bool:
        return reply.status == 200

    document = client.until(published, "GET", f"/openapi/v3/apis/example.com/{version}", timeout=60).body
    assert [path[-1] for path in enums(document["components"]["schemas"])] == ["size"]
