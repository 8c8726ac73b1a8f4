"""Gates of nodes, certificates and volumes in the form that is not the default, also of kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import FORMS, feature_gates, serving
from support.https_client import MERGE, HttpsClient, Reply, causes
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

OFF: Final = (
    "ClearingNominatedNodeNameAfterBinding",
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
    "KubeletInUserNamespace",
    "KubeletServiceAccountTokenForCredentialProviders",
    "MutatingAdmissionPolicy",
    "PodCertificateRequest",
    "SELinuxMount",
    "StorageVersionMigrator",
)
PREEMPTION: Final = "InPlacePodVerticalScalingSchedulerPreemption"
CHANGED: Final = f"{feature_gates(OFF, enabled=False)},{PREEMPTION}=true"
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
ACCOUNTS: Final = "/api/v1/namespaces/default/serviceaccounts"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1"
ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
INFO: Final = {
    "machineID": "m",
    "systemUUID": "s",
    "bootID": "b",
    "kernelVersion": "k",
    "osImage": "o",
    "containerRuntimeVersion": "c",
    "kubeletVersion": "k",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}
KEY: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), CHANGED) as client:
        ensure_service_account(client)
        yield client


@pytest.fixture(scope="module", params=FORMS)
def default(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("default")) as client:
        ensure_service_account(client)
        yield client


def pod(name: str, **spec: Any) -> Object:
    spec = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def bound(client: HttpsClient, name: str) -> str | None:
    """Nominate a node for a new pod, bind the pod, and return the node that is still nominated."""
    assert client.call("POST", PODS, pod(name)).status == 201
    nominated = {"status": {"nominatedNodeName": "n"}}
    assert client.call("PATCH", f"{PODS}/{name}/status", nominated, MERGE).status == 200
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
    assert client.call("POST", f"{PODS}/{name}/binding", binding).status == 201
    node: str | None = client.call("GET", f"{PODS}/{name}").body["status"].get("nominatedNodeName")
    return node


def test_a_binding_keeps_the_nominated_node(client: HttpsClient) -> None:
    assert bound(client, "bound") == "n"
    other = {"status": {"nominatedNodeName": "other"}}
    assert client.call("PATCH", f"{PODS}/bound/status", other, MERGE).status == 200


def test_a_binding_clears_the_nominated_node_by_default(default: HttpsClient) -> None:
    assert bound(default, "bound") is None
    other = {"status": {"nominatedNodeName": "other"}}
    assert causes(default.call("PATCH", f"{PODS}/bound/status", other, MERGE)) == [
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    ]


def node_info(client: HttpsClient) -> Object:
    """Report that a new node runs in a user namespace, and return what is stored."""
    assert client.call("POST", NODES, {"metadata": {"name": "info"}}).status == 201
    status = {"status": {"nodeInfo": {**INFO, "runningInUserNamespace": True}}}
    reply = client.call("PATCH", f"{NODES}/info/status", status, MERGE)
    assert reply.status == 200, reply
    stored: Object = reply.body["status"]["nodeInfo"]
    return stored


def test_nodes_do_not_report_their_user_namespace(client: HttpsClient) -> None:
    assert node_info(client) == INFO


def test_nodes_report_their_user_namespace_by_default(default: HttpsClient) -> None:
    assert node_info(default) == {**INFO, "runningInUserNamespace": True}


def test_the_preemption_policy_of_nodes_is_validated(client: HttpsClient) -> None:
    spec = {"podPreemptionPolicy": {"disableResizePreemption": ["example.com/a", "b"]}}
    created = client.call("POST", NODES, {"metadata": {"name": "policy"}, "spec": spec})
    assert (created.status, created.body["spec"]["podPreemptionPolicy"]) == (201, spec["podPreemptionPolicy"])
    path = "spec.podPreemptionPolicy.disableResizePreemption"

    def found(*keys: str) -> list[str]:
        policy = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": keys}}}
        updated = causes(client.call("PATCH", f"{NODES}/policy", policy, MERGE))
        assert causes(client.call("POST", NODES, {"metadata": {"name": "x"}, **policy})) == updated
        return updated

    assert found("-", "c", "c") == [f'{path}[0]: Invalid value: "-": {KEY}', f'{path}[2]: Duplicate value: "c"']
    assert found(*(f"k{i}" for i in range(21))) == [f"{path}: Too many: 21: must have at most 20 items"]


def test_nodes_have_no_preemption_policy_by_default(default: HttpsClient) -> None:
    spec = {"podPreemptionPolicy": {"disableResizePreemption": ["a"]}}
    created = default.call("POST", NODES, {"metadata": {"name": "policy"}, "spec": spec})
    assert "podPreemptionPolicy" not in created.body["spec"]


def test_projected_sources_of_disabled_gates_are_dropped(client: HttpsClient) -> None:
    sources = [
        {"clusterTrustBundle": {"name": "b", "path": "b"}, "configMap": {"name": "m"}},
        {"podCertificate": {"signerName": "a/b", "keyType": "ED25519", "keyPath": "k"}, "secret": {"name": "s"}},
    ]
    volumes = [{"name": "v", "projected": {"sources": sources}}]
    stored = client.call("POST", PODS, pod("projected", volumes=volumes)).body["spec"]["volumes"][0]["projected"]
    assert stored["sources"] == [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}]


def test_only_the_recursive_change_of_labels_is_allowed(client: HttpsClient) -> None:
    rejected = client.call("POST", PODS, pod("mount", securityContext={"seLinuxChangePolicy": "MountOption"}))
    assert causes(rejected) == [
        'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"'
    ]
    recursive = client.call("POST", PODS, pod("recursive", securityContext={"seLinuxChangePolicy": "Recursive"}))
    assert recursive.status == 201


@pytest.mark.parametrize(
    "path",
    [
        "/apis/certificates.k8s.io/v1/clustertrustbundles",
        "/apis/certificates.k8s.io/v1/podcertificaterequests",
        "/apis/storagemigration.k8s.io/v1/storageversionmigrations",
    ],
)
def test_resources_of_disabled_gates_are_not_served(client: HttpsClient, path: str) -> None:
    assert client.call("GET", path).status == 404


def test_nodes_may_not_read_service_accounts(client: HttpsClient) -> None:
    node = client.with_headers({"Impersonate-User": "system:node:n", "Impersonate-Group": "system:nodes"})
    reply = node.call("GET", f"{ACCOUNTS}/default")
    assert (reply.status, reply.message.rpartition(": ")[2]) == (403, "not allowed to get service accounts")


@pytest.mark.parametrize(
    "role",
    [
        "system:cluster-trust-bundle-discovery",
        "system:controller:podcertificaterequestcleaner",
        "system:controller:storage-version-migrator-controller",
    ],
)
def test_there_are_no_roles_of_disabled_gates(client: HttpsClient, default: HttpsClient, role: str) -> None:
    assert (client.call("GET", f"{ROLES}/{role}").status, default.call("GET", f"{ROLES}/{role}").status) == (404, 200)


def test_the_role_of_nodes_has_no_rules_of_disabled_gates(client: HttpsClient) -> None:
    rules = client.call("GET", f"{ROLES}/system:node").body["rules"]
    found = {resource for rule in rules for resource in rule["resources"]}
    assert {"clustertrustbundles", "podcertificaterequests", "serviceaccounts"} & found == set()


def create_policies(client: HttpsClient) -> None:
    """Create a mutating policy, and a validating one after it, and wait until the server applies the second."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    matched = {"resourceRules": rules}
    expression = 'Object{metadata: Object.metadata{labels: {"mutated": "true"}}}'
    mutating = {
        "matchConstraints": matched,
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        "reinvocationPolicy": "Never",
    }
    validating = {"matchConstraints": matched, "validations": [{"expression": "object.metadata.name != 'rejected'"}]}
    for kind, spec in (("mutating", mutating), ("validating", validating)):
        created = client.call("POST", f"{POLICIES}/{kind}admissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
        assert created.status == 201, created
        binding = {"policyName": "p", **({"validationActions": ["Deny"]} if kind == "validating" else {})}
        path = f"{POLICIES}/{kind}admissionpolicybindings"
        created = client.call("POST", path, {"metadata": {"name": "p"}, "spec": binding})
        assert created.status == 201, created
    client.until(lambda reply: reply.status == 422, "POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "rejected"}})


def is_mutated(reply: Reply) -> bool:
    return "mutated" in (reply.body["metadata"].get("labels") or {})


def test_mutating_policies_have_no_effect(client: HttpsClient) -> None:
    create_policies(client)
    reply = client.call("POST", MAPS, {"metadata": {"name": "accepted"}})
    assert (reply.status, is_mutated(reply)) == (201, False)


def test_mutating_policies_have_their_effect_by_default(default: HttpsClient) -> None:
    create_policies(default)
    default.until(is_mutated, "POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "accepted"}})
