"""--etcd-servers-overrides: resources and groups with an etcd of their own, in one process and in four services.

Expected health checks, error texts and locations are those of kube-apiserver 1.37.1.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.definitions import definition
from support.etcd import Etcd, running_etcd
from support.failing_starts import failed_start
from support.https_client import HttpsClient, created
from support.server import running
from support.services import NAMES, running_services

NAMESPACE = "/api/v1/namespaces/default"
CONFIG_MAP = f"{NAMESPACE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/overrides.example.com/v1/namespaces/default/widgets"


class Cluster(NamedTuple):
    client: HttpsClient
    default: Etcd
    second: Etcd
    third: Etcd

    def keys(self, etcd: Etcd) -> set[str]:
        """Return the first two parts of all keys below /registry/ in an etcd."""
        request = {"key": _encoded("/registry/"), "range_end": _encoded("/registry0"), "keys_only": True}
        keys = [b64decode(kv["key"]).decode() for kv in etcd.call("/v3/kv/range", request).get("kvs", ())]
        return {"/".join(key.split("/")[2:4]) for key in keys}


def _encoded(key: str) -> str:
    return b64encode(key.encode()).decode()


@contextmanager
def serving(form: str, directory: Path, flag: str) -> Iterator[tuple[HttpsClient, Etcd]]:
    """Run servers with the flag, and yield a client of them and the etcd of --etcd-servers."""
    if form == "one process":
        with (
            running_etcd(directory / "etcd") as etcd,
            running(directory, f"--etcd-servers={etcd.url}", flag) as server,
        ):
            yield HttpsClient(server.kubeconfig), etcd
    else:
        with running_services(directory, **dict.fromkeys(NAMES, (flag,))) as services:
            assert isinstance(services.etcd, Etcd)
            yield HttpsClient(services.kubeconfig, services.url), services.etcd


@pytest.fixture(scope="module", params=["one process", "four services"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with (
        running_etcd(tmp_path_factory.mktemp("second")) as second,
        running_etcd(tmp_path_factory.mktemp("third")) as third,
    ):
        resources = ("/configmaps", "/events", "/services", "rbac.authorization.k8s.io/clusterrolebindings")
        settings = [f"{resource}#{second.url}" for resource in resources]
        settings += [
            f"apps/*#{third.url}",
            f"apps/replicasets#{second.url}",
            f"overrides.example.com/widgets#{third.url}",
        ]
        settings += [f"apiextensions.k8s.io/customresourcedefinitions#{third.url}", f"/nosuch#{third.url}"]
        flag = f"--etcd-servers-overrides={','.join(settings)}"
        with serving(request.param, tmp_path_factory.mktemp("data"), flag) as (client, default):
            yield Cluster(client, default, second, third)


def workload(kind: str) -> dict[str, Any]:
    labels = {"app": "x"}
    container = {"name": "c", "image": "i"}
    return {
        "metadata": {"name": kind},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def test_resources_are_stored_where_the_flag_says(cluster: Cluster) -> None:
    client = cluster.client
    node_port = {"type": "NodePort", "ports": [{"port": 80}]}
    created(client, CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    created(client, f"{NAMESPACE}/secrets", {"metadata": {"name": "a"}})
    created(client, f"{NAMESPACE}/services", {"metadata": {"name": "a"}, "spec": node_port})
    for path, kind in ((DEPLOYMENTS, "deployment"), (DEPLOYMENTS.replace("deployments", "replicasets"), "rs")):
        created(client, path, workload(kind))
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    created(client, f"{NAMESPACE}/events", {"metadata": {"name": "e"}, "involvedObject": involved})
    created(client, CRDS, definition("overrides.example.com", "Widget"))
    client.until(
        lambda reply: reply.status == 201,
        "POST",
        WIDGETS,
        {
            "apiVersion": "overrides.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
        },
    )

    second = {"configmaps/default", "events/default", "services/specs", "replicasets/default"}
    third = {"deployments/default"}
    custom = {"apiextensions.k8s.io/customresourcedefinitions", "overrides.example.com/widgets"}
    assert second <= cluster.keys(cluster.second)
    assert "ranges/servicenodeports" in cluster.keys(cluster.second)  # with the services, as upstream
    assert "clusterrolebindings/cluster-admin" in cluster.keys(cluster.second)
    assert cluster.keys(cluster.third) == third
    default = cluster.keys(cluster.default)
    assert {"secrets/default", "clusterroles/cluster-admin"} | custom <= default
    assert not default & (second | third)
    assert not {key for key in default if key.startswith(("clusterrolebindings/", "ranges/"))}


def test_reads_and_watches_follow_the_store_of_their_resource(cluster: Cluster) -> None:
    client = cluster.client
    path = f"{CONFIG_MAP}/watched"
    stored = created(client, CONFIG_MAP, {"metadata": {"name": "watched"}})
    version = int(stored["metadata"]["resourceVersion"])
    stored["data"] = {"k": "new"}
    changed = client.call("PUT", path, stored).body
    assert int(changed["metadata"]["resourceVersion"]) > version
    listed = client.call("GET", f"{CONFIG_MAP}?fieldSelector=metadata.name=watched").body
    assert [item["data"] for item in listed["items"]] == [{"k": "new"}]
    head = cluster.second.call("/v3/kv/range", {"key": _encoded("\0"), "count_only": True})["header"]["revision"]
    assert version < int(listed["metadata"]["resourceVersion"]) <= int(head)
    query = f"watch=true&resourceVersion={version}&timeoutSeconds=2&fieldSelector=metadata.name=watched"
    events = client.call("GET", f"{CONFIG_MAP}?{query}").body
    assert '"k":"new"' in str(events).replace("'", '"').replace(" ", "")
    assert client.call("DELETE", path).status == 200


def test_events_of_both_groups_are_one_resource(cluster: Cluster) -> None:
    event = {
        "metadata": {"name": "new"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    }
    created(cluster.client, "/apis/events.k8s.io/v1/namespaces/default/events", event)
    assert cluster.client.call("GET", f"{NAMESPACE}/events/new").status == 200
    assert not {key for key in cluster.keys(cluster.default) if key.startswith("events")}


def test_each_store_has_its_health_checks(cluster: Cluster) -> None:
    lines = str(cluster.client.call("GET", "/readyz?verbose").body).splitlines()
    names = [line.removeprefix("[+]").removesuffix(" ok") for line in lines if "etcd" in line]
    assert names == [
        "etcd",
        "etcd-readiness",
        "etcd-override-0",
        "etcd-override-readiness-0",
        "etcd-override-1",
        "etcd-override-readiness-1",
    ]
    assert lines.index("[+]informer-sync ok") > lines.index("[+]etcd-override-readiness-1 ok")
    body = str(cluster.client.call("GET", "/livez?verbose&exclude=etcd").body)
    assert "[+]etcd excluded: ok" in body
    assert "[+]etcd-override-0 excluded with etcd: ok" in body
    assert "etcd-override-readiness" not in body
    assert "warn:" not in body
    body = str(cluster.client.call("GET", "/readyz?verbose&exclude=etcd-readiness").body)
    assert "[+]etcd-override-readiness-1 excluded with etcd-readiness: ok" in body
    assert "[+]etcd-override-1 ok" in body
    assert cluster.client.call("GET", "/readyz/etcd-override-readiness-1").body == "ok"


def test_component_statuses_and_sizes_show_a_store_for_each_override(cluster: Cluster) -> None:
    items = cluster.client.call("GET", "/api/v1/componentstatuses").body["items"]
    healthy = {item["metadata"]["name"] for item in items if item["conditions"][0]["status"] == "True"}
    names = {f"etcd-{number}" for number in range(10)}  # the default and nine settings
    assert healthy == names
    metrics = str(cluster.client.call("GET", "/metrics").body)
    found = set(re.findall(r'^apiserver_storage_size_bytes\{storage_cluster_id="([^"]+)"\} [1-9]', metrics, re.M))
    assert found == names


def test_an_unavailable_store_affects_its_resources_only(cluster: Cluster) -> None:
    """The last test of the cluster: it stops a store."""
    client = cluster.client
    assert client.call("GET", f"{DEPLOYMENTS}/deployment").status == 200
    cluster.third.stop()
    checks = client.until(lambda reply: reply.status == 500, "GET", "/livez/etcd-override-1", timeout=20).body
    assert "internal server error" in str(checks)
    assert client.call("GET", "/livez/etcd-override-0").status == 200
    assert client.call("POST", DEPLOYMENTS, workload("other")).status >= 500
    created(client, CONFIG_MAP, {"metadata": {"name": "later"}})
    created(client, f"{NAMESPACE}/secrets", {"metadata": {"name": "later"}})


@pytest.mark.long
@pytest.mark.parametrize(
    "value",
    ["pods", "/pods", "/pods#", "/pods#http://a;", "/pods#http://a#b", "pods#http://a", "v1//pods#http://a", "/a#b,x"],
)
def test_an_invalid_setting_is_rejected(tmp_path: Path, value: str) -> None:
    failed = failed_start(tmp_path, f"--etcd-servers-overrides={value}")
    assert failed.code == 1
    assert failed.stderr == (
        "Error: --etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, "
        "semicolon separated\n"
    )
    assert not (tmp_path / "tetrapod.db").exists()
