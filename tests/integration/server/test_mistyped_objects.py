"""Stored objects with values of wrong types cannot be read, as in kube-apiserver, and can be deleted as corrupt.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from support.etcd import Etcd, running_etcd
from support.forms import ETCD, STOCK, feature_gates, serving_over
from support.https_client import HttpsClient, created
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

GATE: Final = "AllowUnsafeMalformedObjectDeletion"
OPTION: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
CRON_JOBS: Final = "/apis/batch/v1/namespaces/default/cronjobs"
CASES: Final[dict[str, tuple[str, Object, str]]] = {
    "deployments/default": (
        DEPLOYMENTS,
        {"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": "x"}},
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "cronjobs/default": (
        CRON_JOBS,
        {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"labels": 5}},
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
    ),
}


@pytest.fixture(params=[ETCD, STOCK])
def setting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HttpsClient, Etcd]]:
    directory = tmp_path_factory.mktemp("mistyped")
    gate = feature_gates([GATE], enabled=True)
    json_stored = "--storage-media-type=application/json"
    with (
        running_etcd(directory / "etcd") as etcd,
        serving_over(etcd, request.param, directory / "server", gate, json_stored) as client,
    ):
        ensure_service_account(client)
        yield client, etcd


@pytest.mark.parametrize("prefix", CASES)
def test_an_object_with_a_value_of_a_wrong_type_is_corrupt(setting: tuple[HttpsClient, Etcd], prefix: str) -> None:
    client, etcd = setting
    path, content, reason = CASES[prefix]
    assert client.call("GET", path).body["items"] == []  # the watch cache is filled
    metadata = {"name": "bad", "namespace": "default", "uid": "u", **content.get("metadata", {})}
    key = f"/registry/{prefix}/bad"
    value = json.dumps({**content, "metadata": metadata})
    etcd.put(key, value.encode())
    read = client.until(lambda reply: reply.status != 404, "GET", f"{path}/bad")
    assert read.status == 500
    assert f"Key: /{prefix}/bad, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=" in read.message
    assert read.message.endswith(reason)
    listed = client.until(lambda reply: reply.status == 500, "GET", path)
    resource = path.rpartition("/")[2]
    group = path.split("/")[2]
    assert listed.message.startswith(f"failed to read one or more {resource}.{group} from the storage: StorageError: ")
    assert listed.message.endswith(reason)
    patch = {"metadata": {"annotations": {"a": "b"}}}
    changed = client.call("PATCH", f"{path}/bad", patch, "application/merge-patch+json")
    assert (changed.status, changed.message.endswith(reason)) == (500, True)
    assert client.call("DELETE", f"{path}/bad").status == 500
    assert client.call("DELETE", f"{path}/bad", {OPTION: True}).status == 200
    client.until(lambda reply: reply.status == 200 and reply.body["items"] == [], "GET", path)
    assert client.call("GET", f"{path}/bad").status == 404


def test_other_objects_of_the_kind_can_be_read(setting: tuple[HttpsClient, Etcd]) -> None:
    client, etcd = setting
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    created(client, DEPLOYMENTS, {"metadata": {"name": "good"}, "spec": spec})
    key = "/registry/deployments/default/good"
    value = etcd.value(key).replace(b'"replicas":0', b'"replicas":{}').replace(b'"good"', b'"evil"')
    etcd.put(key.replace("good", "evil"), value)
    client.until(lambda reply: reply.status == 500, "GET", f"{DEPLOYMENTS}/evil")
    assert client.call("GET", f"{DEPLOYMENTS}/good").body["spec"]["replicas"] == 0
