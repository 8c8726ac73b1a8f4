"""Lists of more than 128 KiB are compressed, also where only a part of each object is sent, as in kube-apiserver."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import FORMS, serving
from support.https_client import HttpsClient, created

MAPS: Final = "/api/v1/namespaces/default/configmaps"
JSON: Final = "application/json"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("lists")) as client:
        client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default", timeout=30)
        for number in range(100):
            name = f"data-{number:03}"
            created(client, MAPS, {"metadata": {"name": name, "labels": {"in": "data"}}, "data": {"k": "v" * 2000}})
            metadata = {"name": f"notes-{number:03}", "labels": {"in": "metadata"}, "annotations": {"k": "v" * 2000}}
            created(client, MAPS, {"metadata": metadata})
        yield client


def names(body: Any) -> list[str]:
    return [item.get("object", item)["metadata"]["name"] for item in body.get("items") or body["rows"]]


@pytest.mark.parametrize(
    ("form", "part", "encoding"),
    [
        (JSON, "data", "gzip"),
        (JSON, "metadata", "gzip"),
        (TABLE, "data", None),
        (TABLE, "metadata", "gzip"),
        (PARTIAL, "data", None),
        (PARTIAL, "metadata", "gzip"),
    ],
)
def test_a_list_is_compressed_if_the_response_is_large(
    client: HttpsClient, form: str, part: str, encoding: str | None
) -> None:
    with client.with_headers({"Accept": form, "Accept-Encoding": "gzip"}).lines(
        f"{MAPS}?labelSelector=in%3D{part}"
    ) as answer:
        body = answer.read()
        assert answer.headers["Content-Encoding"] == encoding
    listed = json.loads(gzip.decompress(body) if encoding else body)
    prefix = "data" if part == "data" else "notes"
    assert names(listed) == [f"{prefix}-{number:03}" for number in range(100)]
