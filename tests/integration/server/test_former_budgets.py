"""PodDisruptionBudgets that a former kube-apiserver stored as policy/v1beta1, where an empty selector selects none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from support.etcd import Etcd, running_etcd
from support.forms import ETCD, serving_over
from support.https_client import HttpsClient

LABEL: Final = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
MATCH_NONE: Final = {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}
FORMER_MATCH_ALL: Final = {"matchExpressions": [{"key": LABEL, "operator": "DoesNotExist"}]}
MIXED: Final = {"matchLabels": {"a": "b"}, **FORMER_MATCH_ALL}
LABELLED: Final = {"matchLabels": {"a": "b"}}
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def as_json(name: str, selector: Any) -> bytes:
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", "creationTimestamp": "2021-01-01T00:00:00Z"}
    spec = {"minAvailable": 1, **({} if selector is None else {"selector": selector})}
    budget = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1beta1", "metadata": metadata, "spec": spec}
    return json.dumps(budget, separators=(",", ":")).encode()


def as_protobuf(name: str) -> bytes:
    """Return a stored message of a budget with an empty selector."""

    def part(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    metadata = part(1, name.encode()) + part(3, b"default") + part(5, f"u-{name}".encode())
    type_meta = part(1, b"policy/v1beta1") + part(2, b"PodDisruptionBudget")
    return b"k8s\0" + part(1, type_meta) + part(2, part(1, metadata) + part(2, part(2, b"")))


class Cluster(NamedTuple):
    client: HttpsClient
    etcd: Etcd

    def store(self, name: str, value: bytes) -> None:
        key = f"/registry/poddisruptionbudgets/default/{name}"
        self.etcd.put(key, value)

    def read(self, name: str) -> dict[str, Any]:
        """Return a budget once the watch cache has it."""
        reply = self.client.until(lambda reply: reply.status != 404, "GET", f"{BUDGETS}/{name}")
        assert reply.status == 200, reply.body
        body: dict[str, Any] = reply.body
        return body


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("former-budgets")
    with running_etcd(directory / "etcd") as etcd, serving_over(etcd, ETCD, directory, "--controllers=-*") as client:
        yield Cluster(client, etcd)


@pytest.mark.parametrize(
    ("name", "former", "selector"),
    [
        ("empty", {}, MATCH_NONE),
        ("everything", FORMER_MATCH_ALL, {}),
        ("mixed", MIXED, LABELLED),
        ("labelled", LABELLED, LABELLED),
        ("none", None, None),
    ],
)
def test_a_stored_budget_selects_the_same_pods(cluster: Cluster, name: str, former: Any, selector: Any) -> None:
    cluster.store(name, as_json(name, former))
    budget = cluster.read(name)
    assert (budget["apiVersion"], budget["spec"].get("selector")) == ("policy/v1", selector)
    replaced = cluster.client.call(
        "PUT", f"{BUDGETS}/{name}", {**budget, "spec": {**budget["spec"], "minAvailable": 2}}
    )
    assert (replaced.status, replaced.body["spec"].get("selector")) == (200, selector), replaced.body
    stored = json.loads(cluster.etcd.value(f"/registry/poddisruptionbudgets/default/{name}"))
    assert (stored["apiVersion"], stored["spec"]["minAvailable"]) == ("policy/v1", 2)


def test_a_budget_that_is_stored_as_protobuf_selects_the_same_pods(cluster: Cluster) -> None:
    cluster.store("message", as_protobuf("message"))
    budget = cluster.read("message")
    assert (budget["apiVersion"], budget["metadata"]["uid"], budget["spec"]) == (
        "policy/v1",
        "u-message",
        {"selector": MATCH_NONE},
    )
    listed = cluster.client.call("GET", BUDGETS).body["items"]
    assert "message" in [item["metadata"]["name"] for item in listed]
