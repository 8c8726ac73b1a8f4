"""Rights of nodes beyond their own objects (NodeRestriction), and the right to attest for a signer
(ClusterTrustBundleAttest).

Tested in one process and in four services, since admission runs in core and the permissions are the auth service's.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.https_client import Reply
from support.server import running
from support.service_accounts import wait_for_service_account
from support.services import running_services
from support.token_users import TokenUsers
from support.waiting import until

TOKENS = """admin-token,admin,1,system:masters
node-token,system:node:n1,2,system:nodes
publisher-token,publisher,3
signer-token,signer,4
nameless-token,system:node:,5,system:nodes
"""
MERGE = "application/merge-patch+json"
CORE, CERTIFICATES, STORAGE = "/api/v1", "/apis/certificates.k8s.io/v1", "/apis/storage.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS, CLAIMS, ACCOUNTS = (
    f"{CORE}/namespaces/default/{kind}" for kind in ("pods", "persistentvolumeclaims", "serviceaccounts")
)
REQUESTS = f"{CERTIFICATES}/namespaces/default/podcertificaterequests"
_NUMBERS = itertools.count()


@contextmanager
def serving(form: str, directory: Path) -> Iterator[TokenUsers]:
    (directory / "tokens.csv").write_text(TOKENS)
    auth = ("--authorization-mode=Node,RBAC", f"--token-auth-file={directory}/tokens.csv")
    core = ("--enable-admission-plugins=NodeRestriction",)
    if form == "one process":
        with running(directory, *auth, *core) as server:
            yield TokenUsers(server.url)
    else:
        with running_services(directory, auth=auth, core=core) as services:
            yield TokenUsers(services.url)


@pytest.fixture(scope="module", params=["one process", "four services"])
def users(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenUsers]:
    with serving(request.param, tmp_path_factory.mktemp("nodes")) as users:
        wait_for_service_account(lambda method, path: Reply(*users.call("admin", method, path), []))
        grant(users, "publisher", CERTIFICATES, ["clustertrustbundles"], ["create", "update", "patch", "get"])
        grant(users, "signer", CERTIFICATES, ["podcertificaterequests/status"], ["update", "patch", "get"])
        for name in ("n1", "n2"):
            users.create(f"{CORE}/nodes", {"metadata": {"name": name}})
        yield users


def grant(
    users: TokenUsers, user: str, group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> None:
    name = f"{user}-{next(_NUMBERS)}"
    rule: Any = {"apiGroups": [group.removeprefix("/apis/").partition("/")[0]], "resources": resources, "verbs": verbs}
    if names is not None:
        rule["resourceNames"] = names
    users.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    users.create(f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": ref})


def certificate() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "anchor")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    )
    builder = (
        builder.not_valid_before(now)
        .not_valid_after(now + timedelta(days=9))
        .add_extension(x509.BasicConstraints(True, None), True)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def bundle(signer: str, name: str) -> Any:
    prefix = signer.replace("/", ":") + ":" if signer else ""
    spec = {"trustBundle": certificate(), **({"signerName": signer} if signer else {})}
    return {"metadata": {"name": prefix + name}, "spec": spec}


def pod(users: TokenUsers, volumes: list[Any], node: str = "n1", **metadata: Any) -> Any:
    spec = {
        "nodeName": node,
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": "i"}],
        "volumes": volumes,
    }
    return users.create(PODS, {"metadata": {"name": f"pod-{next(_NUMBERS)}", **metadata}, "spec": spec})


# --- ClusterTrustBundleAttest


def test_a_trust_bundle_of_a_signer_requires_the_attest_permission(users: TokenUsers) -> None:
    code, answer = users.call("publisher", "POST", f"{CERTIFICATES}/clustertrustbundles", bundle("example.com/a", "x"))
    assert code == 403
    why = 'user not permitted to attest for signerName "example.com/a"'
    assert answer["message"] == f'clustertrustbundles.certificates.k8s.io "example.com:a:x" is forbidden: {why}'
    assert (
        users.call("publisher", "POST", f"{CERTIFICATES}/clustertrustbundles", bundle("", f"free-{next(_NUMBERS)}"))[0]
        == 201
    )


@pytest.mark.parametrize("permitted", ["granted.example.com/b", "granted.example.com/*"])
def test_a_trust_bundle_is_created_with_the_permission_on_the_signer_or_its_domain(
    users: TokenUsers, permitted: str
) -> None:
    domain = "one" if permitted.endswith("b") else "all"
    grant(users, "publisher", CERTIFICATES, ["signers"], ["attest"], [permitted.replace("granted", domain)])
    made = bundle(f"{domain}.example.com/b", "x")
    until(lambda: users.call("publisher", "POST", f"{CERTIFICATES}/clustertrustbundles", made)[0] == 201)


def test_an_update_of_a_signers_trust_bundle_requires_the_permission_unless_only_owners_or_finalizers_change(
    users: TokenUsers,
) -> None:
    name = users.create(f"{CERTIFICATES}/clustertrustbundles", bundle("example.com/c", "x"))["metadata"]["name"]
    path = f"{CERTIFICATES}/clustertrustbundles/{name}"
    assert users.call("publisher", "PATCH", path, {"spec": {"trustBundle": certificate()}}, MERGE)[0] == 403
    assert users.call("publisher", "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)[0] == 403
    assert users.call("publisher", "PATCH", path, {"metadata": {"finalizers": ["example.com/f"]}}, MERGE)[0] == 200


# --- volume claims


@pytest.fixture(scope="module")
def used_claim(users: TokenUsers) -> str:
    """The path of a claim that a pod on node n1 uses."""
    size = {"requests": {"storage": "1Gi"}}
    users.create(CLAIMS, {"metadata": {"name": "used"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": size}})
    pod(users, [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}])
    until(lambda: users.call("node", "GET", f"{CLAIMS}/used")[0] == 200)
    return f"{CLAIMS}/used/status"


def test_a_node_reports_sizes_and_conditions_of_a_volume_claim(users: TokenUsers, used_claim: str) -> None:
    condition = {"type": "FileSystemResizePending", "status": "True"}
    status = {
        "capacity": {"storage": "1Gi"},
        "conditions": [condition],
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": "NodeResizePending"},
    }
    code, answer = users.call("node", "PATCH", used_claim, {"status": status}, MERGE)
    assert (code, answer["status"]["allocatedResources"]) == (200, {"storage": "2Gi"})


@pytest.mark.parametrize(
    "change", [{"status": {"phase": "Lost"}}, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": None}}]
)
def test_a_node_may_change_nothing_else_of_a_volume_claim(users: TokenUsers, used_claim: str, change: Any) -> None:
    code, answer = users.call("node", "PATCH", used_claim, change, MERGE)
    assert code == 403
    text = 'node "n1" is not allowed to update fields other than status.quantity and status.conditions: @@ -'
    assert f'persistentvolumeclaims "used" is forbidden: {text}' in answer["message"]
    if "status" in change:
        assert '\n-  "Phase": "Pending",\n+  "Phase": "Lost",\n' in answer["message"]


# --- tokens


def token(users: TokenUsers, bound: Any, audiences: list[str]) -> tuple[int, Any]:
    meta = bound["metadata"]
    ref = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    return users.call(
        "node", "POST", f"{ACCOUNTS}/default/token", {"spec": {"audiences": audiences, "boundObjectRef": ref}}
    )


def claim_of(users: TokenUsers, name: str, source: Any) -> None:
    """A claim that is bound to a volume with that source."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    volume = {"capacity": size, "accessModes": modes, "storageClassName": "", **source}
    users.create(f"{CORE}/persistentvolumes", {"metadata": {"name": f"pv-{name}"}, "spec": volume})
    spec = {"accessModes": modes, "resources": {"requests": size}, "volumeName": f"pv-{name}", "storageClassName": ""}
    users.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})


@pytest.fixture(scope="module")
def drivers(users: TokenUsers) -> None:
    for name in ("csi.example.com", "ebs.csi.aws.com"):
        spec = {"tokenRequests": [{"audience": f"aud-of-{name}"}]}
        users.create(f"{STORAGE}/csidrivers", {"metadata": {"name": name}, "spec": spec})


def test_a_node_requests_a_token_for_an_audience_that_a_volumes_csi_driver_asks_for(
    users: TokenUsers, drivers: None
) -> None:
    csi = {"driver": "csi.example.com", "volumeHandle": "h"}
    claim_of(users, "by-csi", {"csi": csi})
    claim_of(users, "in-tree", {"awsElasticBlockStore": {"volumeID": "vol-1"}})
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volumes = {
        "aud-of-csi.example.com": [
            {"name": "v", "csi": {"driver": "csi.example.com"}},
            {"name": "v", "persistentVolumeClaim": {"claimName": "by-csi"}},
            {"name": "v", "ephemeral": {"volumeClaimTemplate": template}},
        ],
        "aud-of-ebs.csi.aws.com": [{"name": "v", "persistentVolumeClaim": {"claimName": "in-tree"}}],
    }
    for audience, listed in volumes.items():
        for volume in listed:
            bound = pod(users, [volume])
            if "ephemeral" in volume:
                claim_of(users, f"{bound['metadata']['name']}-v", {"csi": csi})
            until(partial(token, users, bound, [audience]), lambda answer: answer[0] == 201)
            code, answer = token(users, bound, ["other"])
            assert code == 403
            assert answer["message"].endswith('system:node:n1 is not authorized to request tokens for audience "other"')


def test_a_rejected_audience_names_the_missing_object_of_a_volume(users: TokenUsers) -> None:
    bound = pod(users, [{"name": "v", "csi": {"driver": "absent.example.com"}}])
    until(lambda: token(users, bound, ["other"])[0] == 403)
    why = 'error validating audience "other": csidriver.storage.k8s.io "absent.example.com" not found'
    assert token(users, bound, ["other"])[1]["message"] == f'serviceaccounts "default" is forbidden: {why}'


def test_a_node_requests_a_token_for_an_audience_that_it_is_granted(users: TokenUsers) -> None:
    bound = pod(users, [])
    grant(users, "system:node:n1", "", ["granted-audience"], ["request-serviceaccounts-token-audience"])
    until(lambda: token(users, bound, ["granted-audience"])[0] == 201)


# --- pod certificates


def certificate_request(users: TokenUsers, bound: Any, signer: str = "example.com/pods", **changes: Any) -> Any:
    key = ec.generate_private_key(ec.SECP256R1())
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    account = users.call("admin", "GET", f"{ACCOUNTS}/default")[1]["metadata"]
    node = users.call("admin", "GET", f"{CORE}/nodes/{bound['spec']['nodeName']}")[1]["metadata"]
    spec = {
        "signerName": signer,
        "podName": bound["metadata"]["name"],
        "podUID": bound["metadata"]["uid"],
        "serviceAccountName": account["name"],
        "serviceAccountUID": account["uid"],
        "nodeName": node["name"],
        "nodeUID": node["uid"],
        "maxExpirationSeconds": 86400,
        "stubPKCS10Request": base64.b64encode(csr.public_bytes(serialization.Encoding.DER)).decode(),
    }
    return {"metadata": {"generateName": "r-"}, "spec": {**spec, **changes}}


def certificate_volume(signer: str) -> list[Any]:
    source = {"podCertificate": {"signerName": signer, "keyType": "ED25519", "credentialBundlePath": "b.pem"}}
    return [{"name": "v", "projected": {"sources": [source]}}]


def test_a_node_requests_a_certificate_for_its_own_pod_and_a_signer_of_its_volumes(users: TokenUsers) -> None:
    bound = pod(users, certificate_volume("example.com/pods"))
    code, answer = users.call("node", "POST", REQUESTS, certificate_request(users, bound))
    assert code == 201, answer
    code, answer = users.call("node", "POST", REQUESTS, certificate_request(users, bound, "example.com/others"))
    assert code == 403
    quoted = f'"default/{bound["metadata"]["name"]}"'
    assert answer["message"].endswith(
        f'is forbidden: pod {quoted} does not mount a podCertificate projected volume for signer "example.com/others"'
    )
    grant(
        users, "system:node:n1", CERTIFICATES, ["example.com:others"], ["request-serviceaccounts-podcertificate-signer"]
    )
    until(
        lambda: users.call("node", "POST", REQUESTS, certificate_request(users, bound, "example.com/others"))[0] == 201
    )


def test_a_node_requests_no_certificate_for_what_does_not_run_on_it(users: TokenUsers) -> None:
    own, other = (pod(users, certificate_volume("example.com/pods"), node=node) for node in ("n1", "n2"))
    name, others = f'"default/{own["metadata"]["name"]}"', f'"default/{other["metadata"]["name"]}"'
    of_n1 = {"nodeName": "n1", "nodeUID": users.call("admin", "GET", f"{CORE}/nodes/n1")[1]["metadata"]["uid"]}
    for bound, changes, code, text in (
        (other, {}, 403, 'PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"'),
        (other, of_n1, 403, f'pod {others} is not running on node "n1" named in the PodCertificateRequest'),
        (
            own,
            {"serviceAccountName": "a"},
            403,
            f'{name} contains serviceAccountName ("a") that differs from running pod ("default")',
        ),
        (
            own,
            {"nodeUID": "x"},
            500,
            f'PodCertificateRequest for pod {name} names node UID "x", inconsistent with the running node (',
        ),
        (
            own,
            {"podUID": "x"},
            500,
            f'PodCertificateRequest for pod {name} contains pod UID ("x") which differs from running pod "',
        ),
        (
            own,
            {"serviceAccountUID": "x"},
            500,
            'names service account UID "x", which differs from the running service account ("',
        ),
        (
            own,
            {"podName": "none"},
            500,
            'while retrieving pod "default/none" named in the PodCertificateRequest: pod "none" not found',
        ),
    ):
        answered, answer = users.call("node", "POST", REQUESTS, certificate_request(users, bound, **changes))
        assert answered == code, answer
        assert text in answer["message"]


def test_a_pod_certificate_is_issued_only_with_the_permission_to_sign(users: TokenUsers) -> None:
    bound = pod(users, certificate_volume("example.com/pods"))
    made = users.create(REQUESTS, certificate_request(users, bound))
    path = f"{REQUESTS}/{made['metadata']['name']}/status"
    denied = {"type": "Denied", "status": "True", "reason": "No", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    code, answer = users.call("signer", "PATCH", path, {"status": {"conditions": [denied]}}, MERGE)
    assert code == 422
    assert answer["message"].endswith(
        'spec.signerName: Forbidden: User "signer" is not permitted to "sign" for signer "example.com/pods"'
    )
    grant(users, "signer", CERTIFICATES, ["signers"], ["sign"], ["example.com/*"])
    until(lambda: users.call("signer", "PATCH", path, {"status": {"conditions": [denied]}}, MERGE)[0] == 200)


def test_a_node_user_without_a_name_is_rejected(users: TokenUsers) -> None:
    grant(users, "system:node:", "", ["configmaps"], ["create"])
    path = f"{CORE}/namespaces/default/configmaps"

    def message() -> str:
        return str(users.call("nameless", "POST", path, {"metadata": {"name": "x"}})[1].get("message", ""))

    until(message, lambda text: text.endswith('is forbidden: could not determine node from user "system:node:"'))
