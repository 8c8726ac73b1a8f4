"""Alpha gates that are switched on: their fields are kept and validated, and rules change.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import SQLITE, STOCK, feature_gates, serving
from support.https_client import HttpsClient, Reply
from support.service_accounts import ensure_service_account

GATES: Final = (
    "AtomicWriteVolumeUserFields",
    "ContainerStopSignals",
    "CrossNamespaceVolumeDataSource",
    "EmptyDirVolumeMode",
    "GRPCContainerProbeTLS",
    "H2CContainerProbe",
    "MutablePVNodeAffinity",
)
ON: Final = feature_gates(GATES, enabled=True)
PODS: Final = "/api/v1/namespaces/default/pods"
CLAIMS: Final = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    """A server with the gates."""
    with serving(request.param, tmp_path_factory.mktemp("gates"), ON) as client:
        ensure_service_account(client)
        yield client


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    """A server without the gates."""
    with serving(SQLITE, tmp_path_factory.mktemp("plain")) as client:
        ensure_service_account(client)
        yield client


def pod(name: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", **container}], **spec}}


def causes(reply: Reply) -> list[tuple[str, str]]:
    assert reply.status == 422, reply.body
    return [(cause["field"], cause["message"]) for cause in reply.body["details"]["causes"]]


def stopped_by(signal: str) -> dict[str, Any]:
    return {"lifecycle": {"stopSignal": signal}}


def test_stop_signals_are_those_of_the_operating_system(client: HttpsClient) -> None:
    at = "spec.containers[0].lifecycle.stopSignal"
    for name, signal, system in (
        ("usr1", "SIGUSR1", "linux"),
        ("rtmin", "SIGRTMIN+15", "linux"),
        ("rtmax", "SIGRTMAX-14", "linux"),
        ("windows", "SIGTERM", "windows"),
    ):
        reply = client.call("POST", PODS, pod(name, stopped_by(signal), os={"name": system}))
        assert reply.status == 201, reply.body
        assert reply.body["spec"]["containers"][0]["lifecycle"] == {"stopSignal": signal}
    rejected = client.call("POST", PODS, pod("none", stopped_by("SIGTERM")))
    assert causes(rejected) == [(at, "Forbidden: may not be set for containers with empty `spec.os.name`")]
    rejected = client.call("POST", PODS, pod("usr1w", stopped_by("SIGUSR1"), os={"name": "windows"}))
    text = 'Unsupported value: "SIGUSR1": supported values: "SIGKILL", "SIGTERM"'
    assert causes(rejected) == [(at, text)]
    ((field, text),) = causes(client.call("POST", PODS, pod("bad", stopped_by("SIGFOO"), os={"name": "linux"})))
    assert field == at
    assert text.startswith('Unsupported value: "SIGFOO": supported values: "SIGABRT", "SIGALRM", "SIGBUS"')
    assert text.endswith('"SIGXCPU", "SIGXFSZ"')
    assert text.count('"SIG') == 66


def test_probes_by_grpc_have_a_mode(client: HttpsClient) -> None:
    for mode in ("Plaintext", "TLS"):
        probe = {"readinessProbe": {"grpc": {"port": 1, "mode": mode}}}
        reply = client.call("POST", PODS, pod(f"mode-{mode.lower()}", probe))
        assert reply.status == 201, reply.body
        assert reply.body["spec"]["containers"][0]["readinessProbe"]["grpc"]["mode"] == mode
    rejected = client.call("POST", PODS, pod("mode", {"readinessProbe": {"grpc": {"port": 1, "mode": "tls"}}}))
    text = 'Unsupported value: "tls": supported values: "Plaintext", "TLS"'
    assert causes(rejected) == [("spec.containers[0].readinessProbe.grpc.mode", text)]


def test_probes_and_hooks_by_http_have_a_protocol(client: HttpsClient) -> None:
    plain = {"httpGet": {"port": 1}}
    container = {"readinessProbe": {"httpGet": {"port": 1, "protocol": "HTTP2"}}, "lifecycle": {"preStop": plain}}
    reply = client.call("POST", PODS, pod("protocol", container))
    assert reply.status == 201, reply.body
    created = reply.body["spec"]["containers"][0]
    action = {"path": "/", "port": 1, "scheme": "HTTP"}
    assert created["readinessProbe"]["httpGet"] == {**action, "protocol": "HTTP2"}
    assert created["lifecycle"]["preStop"]["httpGet"] == {**action, "protocol": "HTTP1"}
    at = "spec.containers[0].readinessProbe.httpGet"
    for fields, expected in (
        ({"protocol": "h2"}, (f"{at}.protocol", 'Unsupported value: "h2": supported values: "HTTP1", "HTTP2"')),
        (
            {"protocol": "HTTP2", "scheme": "HTTPS"},
            (f"{at}.protocol", 'Invalid value: "HTTP2": is only supported with HTTP (H2C)'),
        ),
        (
            {"protocol": "HTTP2", "host": "h"},
            (f"{at}.host", 'Invalid value: "h": must be empty when `protocol` is "HTTP2"'),
        ),
    ):
        rejected = client.call("POST", PODS, pod("bad", {"readinessProbe": {"httpGet": {"port": 1, **fields}}}))
        assert causes(rejected) == [expected]
    selector = {"matchLabels": {"app": "a"}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod("t", {"livenessProbe": plain})["spec"]}
    workload = {"metadata": {"name": "d"}, "spec": {"replicas": 0, "selector": selector, "template": template}}
    spec = client.call("POST", "/apis/apps/v1/namespaces/default/deployments", workload).body["spec"]
    assert spec["template"]["spec"]["containers"][0]["livenessProbe"]["httpGet"] == action


def test_empty_directories_have_a_mode(client: HttpsClient) -> None:
    volume = {"name": "v", "emptyDir": {"mode": 0o1777}}
    reply = client.call("POST", PODS, pod("directory", {}, volumes=[volume]))
    assert reply.status == 201, reply.body
    assert reply.body["spec"]["volumes"][0] == volume
    text = "Invalid value: 1024: must be a number between 0 and 01777 (octal), both inclusive"
    for mode in (0o2000, -1):
        rejected = client.call("POST", PODS, pod("bad", {}, volumes=[{"name": "v", "emptyDir": {"mode": mode}}]))
        assert causes(rejected) == [("spec.volumes[0].emptyDir.mode", text.replace("1024", str(mode)))]


def volumes_of(user: int) -> list[dict[str, Any]]:
    """Return a volume of each kind that has users, with the user wherever one can be."""
    item, field_item = {"key": "k", "path": "k", "user": user}, {"path": "f", "user": user}
    field_item["fieldRef"] = {"fieldPath": "metadata.name"}
    sources = [
        {"secret": {"name": "s", "items": [item]}},
        {"configMap": {"name": "s", "items": [{**item, "path": "l"}]}},
        {"downwardAPI": {"items": [field_item]}},
        {"serviceAccountToken": {"path": "t", "user": user}},
        {"clusterTrustBundle": {"name": "b", "path": "b", "user": user}},
        {"podCertificate": {"signerName": "e.com/s", "keyType": "ED25519", "keyPath": "c", "user": user}},
    ]
    return [
        {"name": "s", "secret": {"secretName": "s", "defaultUser": user, "items": [item]}},
        {"name": "c", "configMap": {"name": "c", "defaultUser": user, "items": [item]}},
        {"name": "d", "downwardAPI": {"defaultUser": user, "items": [field_item]}},
        {"name": "p", "projected": {"defaultUser": user, "sources": sources}},
    ]


def users_in(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [value[name] for name in ("user", "defaultUser") if name in value]
        return own + [user for member in value.values() for user in users_in(member)]
    return [user for member in value for user in users_in(member)] if isinstance(value, list) else []


def test_files_of_volumes_have_users(client: HttpsClient) -> None:
    reply = client.call("POST", PODS, pod("users", {}, volumes=volumes_of(7)))
    assert reply.status == 201, reply.body
    assert users_in(reply.body["spec"]["volumes"]) == [7] * 13
    found = causes(client.call("POST", PODS, pod("bad", {}, volumes=volumes_of(-1))))
    assert {message for _, message in found} == {
        "Invalid value: -1: must be between 0 and 2147483647, inclusive",
    }
    at = "spec.volumes[{}].{}".format
    source = "projected.sources[{}].{}".format
    assert [field for field, _ in found] == [
        at(0, "secret.defaultUser"),
        at(0, "secret.items[0].user"),
        at(1, "configMap.defaultUser"),
        at(1, "configMap.items[0].user"),
        at(2, "downwardAPI.defaultUser"),
        at(2, "downwardAPI.user"),
        at(3, "projected.defaultUser"),
        at(3, source(0, "secret.items[0].user")),
        at(3, source(1, "configMap.items[0].user")),
        at(3, source(2, "downwardAPI.user")),
        at(3, source(3, "serviceAccountToken.user")),
        at(3, source(4, "clusterTrustBundle.user")),
        at(3, source(5, "podCertificate.user")),
    ]


def claim(name: str) -> dict[str, Any]:
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s", "namespace": "other"}
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "dataSourceRef": source}
    return {"metadata": {"name": name}, "spec": spec}


def test_claims_refer_to_data_in_other_namespaces(client: HttpsClient) -> None:
    body = claim("crossing")
    reply = client.call("POST", CLAIMS, body)
    assert reply.status == 201, reply.body
    assert reply.body["spec"]["dataSourceRef"] == body["spec"]["dataSourceRef"]
    assert "dataSource" not in reply.body["spec"]
    body["metadata"]["name"], body["spec"]["dataSourceRef"]["namespace"] = "bad", "Other"
    ((field, _),) = causes(client.call("POST", CLAIMS, body))
    assert field == "spec.dataSourceRef.namespace"


def affinity(zone: str) -> dict[str, Any]:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def volume_in(zone: str) -> dict[str, Any]:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nodeAffinity": affinity(zone)}
    return {"metadata": {"name": "v"}, "spec": {**spec, "csi": {"driver": "d.example.com", "volumeHandle": "h"}}}


def test_the_node_affinity_of_a_volume_changes_and_is_removed(client: HttpsClient) -> None:
    assert client.call("POST", VOLUMES, volume_in("a")).status == 201
    reply = client.call("PUT", f"{VOLUMES}/v", volume_in("b"))
    assert reply.status == 200, reply.body
    assert reply.body["spec"]["nodeAffinity"] == affinity("b")
    without = volume_in("b")
    del without["spec"]["nodeAffinity"]
    reply = client.call("PUT", f"{VOLUMES}/v", without)
    assert (reply.status, "nodeAffinity" in reply.body["spec"]) == (200, False)


def test_fields_are_dropped_and_the_affinity_is_immutable_without_the_gates(plain: HttpsClient) -> None:
    container = {**stopped_by("SIGFOO"), "readinessProbe": {"grpc": {"port": 1, "mode": "tls"}}}
    container["livenessProbe"] = {"httpGet": {"port": 1, "protocol": "h2"}}
    volume = {"name": "v", "emptyDir": {"mode": -1}}
    reply = plain.call("POST", PODS, pod("p", container, volumes=[volume, *volumes_of(-1)]))
    assert reply.status == 201, reply.body
    spec = reply.body["spec"]
    assert spec["volumes"][0] == {"name": "v", "emptyDir": {}}
    assert users_in(spec["volumes"]) == []
    assert "dataSourceRef" not in plain.call("POST", CLAIMS, claim("c")).body["spec"]
    assert "lifecycle" not in spec["containers"][0]
    assert spec["containers"][0]["readinessProbe"]["grpc"] == {"port": 1, "service": ""}
    assert "protocol" not in spec["containers"][0]["livenessProbe"]["httpGet"]
    assert plain.call("POST", VOLUMES, volume_in("a")).status == 201
    (cause,) = causes(plain.call("PUT", f"{VOLUMES}/v", volume_in("b")))
    assert cause[0] == "nodeAffinity"
