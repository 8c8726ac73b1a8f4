"""Tests of upstream's controllers other than those for workloads.

They cover volumes, quotas, service accounts, certificates, nodes, garbage collection and namespaces.
"""

from __future__ import annotations

import base64
import json
import time
from functools import partial
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from e2e.stock.conftest import Cluster, Space, condition, must, template
from support.nodes import Nodes
from support.waiting import until
from support.wire import Client

pytestmark = [pytest.mark.stock, pytest.mark.timeout(300)]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def test_leaders_are_elected_by_leases(client: Client, kubelets: Nodes) -> None:
    for name in ("kube-controller-manager", "kube-scheduler"):
        get = partial(lease_of, client, name)
        first = until(get, lambda lease: lease.get("spec", {}).get("holderIdentity"))
        until(get, partial(renewed, first=first))


def lease_of(client: Client, name: str) -> Any:
    return client("GET", f"{LEASES}/{name}").json


def renewed(lease: dict[str, dict[str, str]], first: dict[str, dict[str, str]]) -> bool:
    return lease["spec"]["renewTime"] > first["spec"]["renewTime"]


def test_nodes_get_pod_cidrs_and_unreachable_nodes_get_taints(client: Client, kubelets: Nodes, space: Space) -> None:
    node = until(lambda: client("GET", "/api/v1/nodes/node-c").json, lambda n: n["spec"].get("podCIDR"))
    assert node["spec"]["podCIDR"].startswith("10.244.")
    assert not node["spec"].get("taints")
    kubelets.silent.add("node-c")
    try:
        node = until(
            lambda: client("GET", "/api/v1/nodes/node-c").json, lambda n: len(n["spec"].get("taints") or ()) == 2
        )
        assert {(t["key"], t["effect"]) for t in node["spec"]["taints"]} == {
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        }
        assert condition(node, "Ready") == "Unknown"
    finally:
        kubelets.silent.discard("node-c")
    until(lambda: client("GET", "/api/v1/nodes/node-c").json, lambda n: not n["spec"].get("taints"))


def test_volumes_and_claims_are_bound_and_protected(space: Space) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": space.name}
    volume = {**spec, "capacity": {"storage": "2Gi"}, "hostPath": {"path": "/x"}}
    must(space.client("POST", "/api/v1/persistentvolumes", {"metadata": {"name": space.name}, "spec": volume}), 201)
    claim = {**spec, "resources": {"requests": {"storage": "1Gi"}}}
    space.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim})
    bound = space.until("persistentvolumeclaims", "c", lambda c: c["status"].get("phase") == "Bound")
    assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert bound["status"]["capacity"] == {"storage": "2Gi"}
    mounted = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    space.create("pods", {"metadata": {"name": "p"}, "spec": {**template({})["spec"], **mounted}})
    space.until("pods", "p", lambda p: p["status"]["phase"] == "Running")
    space.delete("persistentvolumeclaims", "c")
    assert space.get("persistentvolumeclaims", "c")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    space.delete("pods", "p")
    space.until_gone("persistentvolumeclaims", "c")
    path = f"/api/v1/persistentvolumes/{space.name}"
    until(lambda: space.client("GET", path).json, lambda v: v["status"]["phase"] == "Released")
    must(space.client("DELETE", path), 200)
    until(lambda: space.client("GET", path).status, lambda status: status == 404)


def test_a_quota_is_calculated_and_enforced(space: Space) -> None:
    space.create(
        "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "count/configmaps": "5"}}}
    )
    until(
        lambda: space.get("resourcequotas", "q"), lambda q: q["status"].get("used", {}).get("count/configmaps") == "1"
    )
    space.create("pods", {**template({}), "metadata": {"name": "p"}})
    assert space.client("POST", space.path("pods"), {**template({}), "metadata": {"name": "q"}}).status == 403
    # The scheduler logs an error if a pod is deleted while it binds it, with kube-apiserver too.
    space.until("pods", "p", lambda p: p["status"]["phase"] == "Running")
    space.delete("pods", "p")
    space.until("resourcequotas", "q", lambda q: q["status"]["used"]["pods"] == "0")


def test_service_accounts_get_valid_tokens(space: Space, cluster: Cluster) -> None:
    annotations = {"kubernetes.io/service-account.name": "default"}
    space.create(
        "secrets",
        {"metadata": {"name": "t", "annotations": annotations}, "type": "kubernetes.io/service-account-token"},
    )
    secret = space.until("secrets", "t", lambda s: s.get("data", {}).get("token"))
    assert base64.b64decode(secret["data"]["namespace"]).decode() == space.name
    assert secret["data"]["ca.crt"]
    token = base64.b64decode(secret["data"]["token"]).decode()
    with Client(cluster.target, token=token) as robot:
        who = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        found = must(robot("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", who), 201)
    assert found["status"]["userInfo"]["username"] == f"system:serviceaccount:{space.name}:default"
    assert space.until("configmaps", "kube-root-ca.crt", bool)["data"]["ca.crt"].startswith("-----BEGIN")


def test_a_certificate_is_approved_and_signed(space: Space, cluster: Cluster) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "someone")])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = asked.public_bytes(serialization.Encoding.PEM)
    spec = {
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        "request": base64.b64encode(pem).decode(),
    }
    made = must(space.client("POST", REQUESTS, {"metadata": {"name": space.name}, "spec": spec}), 201)
    conditions = [{"type": "Approved", "status": "True", "reason": "Test", "message": "because"}]
    must(space.client("PUT", f"{REQUESTS}/{space.name}/approval", {**made, "status": {"conditions": conditions}}), 200)
    done = until(lambda: space.client("GET", f"{REQUESTS}/{space.name}").json, lambda r: r["status"].get("certificate"))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(done["status"]["certificate"]))
    assert certificate.subject == subject
    must(space.client("DELETE", f"{REQUESTS}/{space.name}"), 200)


def test_dependents_are_deleted_by_propagation_policy(space: Space) -> None:
    for policy in ("Orphan", "Background", "Foreground"):
        owner = space.create("configmaps", {"metadata": {"name": "owner"}})
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        space.create("secrets", {"metadata": {"name": "owned", "ownerReferences": [reference]}})
        space.delete("configmaps", "owner", policy)
        space.until_gone("configmaps", "owner")
        if policy == "Orphan":
            assert "ownerReferences" not in space.get("secrets", "owned")["metadata"]
            space.delete("secrets", "owned")
        else:
            space.until_gone("secrets", "owned")


def test_deleting_a_namespace_deletes_its_contents(space: Space) -> None:
    labels = {"app": "web"}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template(labels)}
    space.create("apps/v1/deployments", {"metadata": {"name": "web"}, "spec": spec})
    space.create("configmaps", {"metadata": {"name": "m", "finalizers": ["example.com/held"]}})
    space.until("apps/v1/deployments", "web", lambda d: d["status"].get("readyReplicas") == 2)
    must(space.client("DELETE", f"/api/v1/namespaces/{space.name}"), 200)
    path = f"/api/v1/namespaces/{space.name}"
    held = until(
        lambda: space.client("GET", path).json, lambda n: condition(n, "NamespaceFinalizersRemaining") == "True"
    )
    assert "example.com/held in 1 resource instances" in json.dumps(held)
    space.patch("configmaps", "m", {"metadata": {"finalizers": None}})
    until(lambda: space.client("GET", path).status, lambda status: status == 404)


def test_cluster_roles_are_aggregated(space: Space) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    label = {f"{space.name}.example.com/aggregate": "true"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    whole = {
        "metadata": {"name": f"{space.name}-all"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": label}]},
        "rules": [],
    }
    must(space.client("POST", roles, whole), 201)
    must(
        space.client("POST", roles, {"metadata": {"name": f"{space.name}-part", "labels": label}, "rules": [rule]}), 201
    )
    until(lambda: space.client("GET", f"{roles}/{space.name}-all").json, lambda role: role.get("rules") == [rule])
    for name in ("all", "part"):
        must(space.client("DELETE", f"{roles}/{space.name}-{name}"), 200)


def test_bootstrap_tokens_sign_cluster_info_and_are_deleted_at_expiry(client: Client, kubelets: Nodes) -> None:
    secrets = "/api/v1/namespaces/kube-system/secrets"
    info = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "apiVersion: v1\nkind: Config\n"}}
    must(client("POST", "/api/v1/namespaces/kube-public/configmaps", info), 201, 409)
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))
    data = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-signing": "true",
        "expiration": expires,
    }
    body = {"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": data}
    must(client("POST", secrets, body), 201)
    path = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    until(lambda: client("GET", path).json, lambda m: "jws-kubeconfig-abcdef" in m["data"])
    until(lambda: client("GET", f"{secrets}/bootstrap-token-abcdef").status, lambda status: status == 404)
    until(lambda: client("GET", path).json, lambda m: "jws-kubeconfig-abcdef" not in m["data"])
    must(client("DELETE", path), 200)


def test_validating_policies_are_type_checked(space: Space) -> None:
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rules = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "object.spec.replicas > 'x'"}]}
    must(space.client("POST", policies, {"metadata": {"name": space.name}, "spec": spec}), 201)
    found = until(
        lambda: space.client("GET", f"{policies}/{space.name}").json,
        lambda p: p["status"].get("observedGeneration") == 1,
    )
    (warning,) = found["status"]["typeChecking"]["expressionWarnings"]
    assert "found no matching overload for '_>_' applied to '(int, string)'" in warning["warning"]
    must(space.client("DELETE", f"{policies}/{space.name}"), 200)


def test_service_cidrs_become_ready_and_are_protected(space: Space) -> None:
    networks = "/apis/networking.k8s.io/v1/servicecidrs"
    must(space.client("POST", networks, {"metadata": {"name": space.name}, "spec": {"cidrs": ["10.77.0.0/24"]}}), 201)
    found = until(
        lambda: space.client("GET", f"{networks}/{space.name}").json, lambda n: condition(n, "Ready") == "True"
    )
    assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
    must(space.client("DELETE", f"{networks}/{space.name}"), 200)
    until(lambda: space.client("GET", f"{networks}/{space.name}").status, lambda status: status == 404)


def test_no_component_logged_errors(cluster: Cluster, kubelets: Nodes) -> None:
    """This runs last in the session: no component has logged errors, and none has exited."""
    for component in cluster.components:
        assert component.process.poll() is None
        assert component.unexpected_errors() == [], component.name
