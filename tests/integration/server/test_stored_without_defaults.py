"""Objects stored before a field had a default get it when they are read, and keep it when they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from support.etcd import Etcd, running_etcd
from support.forms import ETCD, STOCK, serving_over
from support.https_client import MERGE, HttpsClient

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLAIMS: Final = "/api/v1/namespaces/default/persistentvolumeclaims"
CLAIM_SPEC: Final = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "10G"}},
    "dataSource": {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "source"},
}
COMPLETE_CLAIM_SPEC: Final = {
    **CLAIM_SPEC,
    "dataSourceRef": {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "source"},
    "volumeMode": "Filesystem",
}


class Cluster(NamedTuple):
    client: HttpsClient
    etcd: Etcd

    def store(self, prefix: str, kind: tuple[str, str], name: str, content: dict[str, Any]) -> str:
        """Store an object past the API, and return its key."""
        group_version, kind_name = kind
        metadata = {"name": name, "uid": f"u-{name}", "creationTimestamp": "2021-01-01T00:00:00Z"}
        if prefix.endswith("/default"):
            metadata["namespace"] = "default"
        value = json.dumps({"kind": kind_name, "apiVersion": group_version, "metadata": metadata, **content})
        key = f"/registry/{prefix}/{name}"
        self.etcd.put(key, value.encode())
        return key

    def claim(self, name: str) -> str:
        return self.store("persistentvolumeclaims/default", ("v1", "PersistentVolumeClaim"), name, {"spec": CLAIM_SPEC})

    def read(self, path: str) -> dict[str, Any]:
        """Return an object once the watch cache has it."""
        reply = self.client.until(lambda reply: reply.status != 404, "GET", path)
        assert reply.status == 200, reply.body
        body: dict[str, Any] = reply.body
        return body


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    form: str = request.param
    directory = tmp_path_factory.mktemp(form)
    flags = () if form == STOCK else ("--controllers=-*",)
    with running_etcd(directory / "etcd") as etcd, serving_over(etcd, form, directory, *flags) as client:
        yield Cluster(client, etcd)


def test_every_kind_of_read_has_the_defaults(cluster: Cluster) -> None:
    client = cluster.client
    revision = client.call("GET", CLAIMS).body["metadata"]["resourceVersion"]
    cluster.claim("read")
    claim = cluster.read(f"{CLAIMS}/read")
    assert claim["spec"] == COMPLETE_CLAIM_SPEC
    for options in (
        "",
        "?resourceVersion=0",
        "?limit=1",
        f"?limit=1&resourceVersion={claim['metadata']['resourceVersion']}",
    ):
        items = client.call("GET", CLAIMS + options).body["items"]
        assert [item["spec"] for item in items] == [COMPLETE_CLAIM_SPEC], options
    events = client.lines(f"{CLAIMS}?watch=1&resourceVersion={revision}")
    with events:
        event = json.loads(events.readline())
    assert (event["type"], event["object"]["spec"]) == ("ADDED", COMPLETE_CLAIM_SPEC)


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
def test_an_object_can_be_written_back_as_it_was_read(cluster: Cluster, query: str) -> None:
    name = "written" if not query else "dry"
    cluster.claim(name)
    claim = cluster.read(f"{CLAIMS}/{name}")
    for method, body, media_type in (("PUT", claim, "application/json"), ("PATCH", {}, MERGE)):
        reply = cluster.client.call(method, f"{CLAIMS}/{name}{query}", body, media_type)
        assert (reply.status, reply.body["spec"]) == (200, COMPLETE_CLAIM_SPEC)


def test_a_write_without_a_change_stores_the_defaults(cluster: Cluster) -> None:
    key = cluster.claim("unchanged")
    claim = cluster.read(f"{CLAIMS}/unchanged")
    first = cluster.client.call("PUT", f"{CLAIMS}/unchanged", claim)
    assert first.body["metadata"]["resourceVersion"] != claim["metadata"]["resourceVersion"]
    if cluster.etcd.value(key).startswith(b"{"):  # kube-apiserver stores protobuf
        assert json.loads(cluster.etcd.value(key))["spec"] == COMPLETE_CLAIM_SPEC
    second = cluster.client.call("PUT", f"{CLAIMS}/unchanged", first.body)
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("prefix", "kind", "path", "content", "expected"),
    [
        (
            "deployments/default",
            ("apps/v1", "Deployment"),
            "/apis/apps/v1/namespaces/default/deployments",
            {
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"spec": {"containers": [{"name": "c", "image": "web:1"}]}},
                }
            },
            {
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"a": "b"}},
                    "strategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                    },
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                    "template": {
                        "metadata": {},
                        "spec": {
                            "containers": [
                                {
                                    "name": "c",
                                    "image": "web:1",
                                    "resources": {},
                                    "imagePullPolicy": "IfNotPresent",
                                    "terminationMessagePath": "/dev/termination-log",
                                    "terminationMessagePolicy": "File",
                                }
                            ],
                            "dnsPolicy": "ClusterFirst",
                            "restartPolicy": "Always",
                            "schedulerName": "default-scheduler",
                            "securityContext": {},
                            "terminationGracePeriodSeconds": 30,
                        },
                    },
                },
                "status": {},
            },
        ),
        (
            "clusterrolebindings",
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {"subjects": [{"kind": "User", "name": "jane"}], "roleRef": {"kind": "ClusterRole", "name": "view"}},
            {
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            },
        ),
        (
            "apiregistration.k8s.io/apiservices",
            ("apiregistration.k8s.io/v1", "APIService"),
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {
                "spec": {
                    "group": "example.com",
                    "version": "v1",
                    "service": {"namespace": "default", "name": "s"},
                    "groupPriorityMinimum": 1,
                    "versionPriority": 1,
                }
            },
            {
                "spec": {
                    "group": "example.com",
                    "version": "v1",
                    "service": {"namespace": "default", "name": "s", "port": 443},
                    "groupPriorityMinimum": 1,
                    "versionPriority": 1,
                }
            },
        ),
        (
            "configmaps/default",
            ("v1", "ConfigMap"),
            "/api/v1/namespaces/default/configmaps",
            {"data": {"a": "b"}},
            {"data": {"a": "b"}},
        ),
    ],
)
def test_the_kinds_of_every_service_get_their_defaults(
    cluster: Cluster, prefix: str, kind: tuple[str, str], path: str, content: dict[str, Any], expected: dict[str, Any]
) -> None:
    name = "v1.example.com" if kind[1] == "APIService" else "stored"
    cluster.store(prefix, kind, name, content)
    received = cluster.read(f"{path}/{name}")
    assert {field: received.get(field) for field in expected} == expected


def test_a_custom_resource_gets_the_defaults_of_its_schema(cluster: Cluster) -> None:
    schema: Any = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 3}}}
        },
    }
    definition: Any = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    client, widgets = cluster.client, "/apis/example.org/v1/namespaces/default/widgets"
    assert client.call("POST", DEFINITIONS, definition).status == 201
    client.until(lambda reply: reply.status == 200, "GET", widgets)
    key = cluster.store("example.org/widgets/default", ("example.org/v1", "Widget"), "stored", {})
    assert cluster.read(f"{widgets}/stored")["spec"] == {"size": 3}
    assert [item["spec"] for item in client.call("GET", widgets).body["items"]] == [{"size": 3}]
    schema["properties"]["spec"]["properties"]["size"]["default"] = 5
    versions = {"spec": {"versions": definition["spec"]["versions"]}}
    changed = client.call("PATCH", f"{DEFINITIONS}/widgets.example.org", versions, MERGE)
    assert changed.status == 200, changed.body
    client.until(lambda reply: reply.body.get("spec") == {"size": 5}, "GET", f"{widgets}/stored")
    written = client.call("PUT", f"{widgets}/stored", client.call("GET", f"{widgets}/stored").body)
    assert written.body["spec"] == {"size": 5}
    assert json.loads(cluster.etcd.value(key))["spec"] == {"size": 5}
