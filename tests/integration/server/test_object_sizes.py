"""Objects that are too large for etcd: the texts of etcd and of its Go client, as kube-apiserver passes them on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.forms import ETCD, serving
from support.https_client import HttpsClient

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LARGEST_MESSAGE = 2_097_152


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(ETCD, tmp_path_factory.mktemp("object-sizes"), "--controllers=-*") as client:
        yield client


def config_map(size: int) -> dict[str, object]:
    """Return a ConfigMap that is about this large, in finalizers, because its data may only have a MiB."""
    return {"metadata": {"name": "large", "finalizers": [f"example.com/{number:052}" for number in range(size // 67)]}}


def test_more_than_etcd_accepts_is_rejected_with_its_text(client: HttpsClient) -> None:
    reply = client.call("POST", CONFIG_MAPS, config_map(1_800_000))
    assert (reply.status, reply.message) == (500, "etcdserver: request is too large")


def test_more_than_the_go_client_of_etcd_sends_is_rejected_with_its_text(client: HttpsClient) -> None:
    reply = client.call("POST", CONFIG_MAPS, config_map(2_300_000))
    message = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (N vs. 2097152)"
    size = re.search(r"\((\d+) vs", reply.message)
    assert size is not None and int(size[1]) > LARGEST_MESSAGE
    assert (reply.status, reply.message.replace(size[1], "N")) == (500, message)
    assert client.call("GET", f"{CONFIG_MAPS}/large").status == 404
