"""Alpha feature gates of pods and volumes: their fields are stored and validated, and kept once the gate is disabled.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.etcd import running_etcd
from support.forms import ETCD, FORMS, STOCK, feature_gates, serving, serving_over
from support.https_client import MERGE, HttpsClient, Reply, causes, created
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

GATES: Final = (
    "AllowInsecureKubeletCertificateSigningRequests",
    "CSIVolumeHealth",
    "ImageVolumeWithDigest",
    "TaintTolerationComparisonOperators",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
)
ON: Final = feature_gates(GATES, enabled=True)
NODES: Final = "--enable-admission-plugins=NodeRestriction"
HEALTH: Final = {"status": "StorageDegraded", "reason": "Slow"}
REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PODS: Final = "/api/v1/namespaces/default/pods"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
CLAIMS: Final = "/api/v1/namespaces/default/persistentvolumeclaims"
CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
RUNTIME_CLASSES: Final = "/apis/node.k8s.io/v1/runtimeclasses"
UNSUPPORTED: Final = 'Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'
LABELS: Final = {"app": "a"}
LABELLED: Final = {"metadata": {"labels": {"b": "c"}}}
GREATER: Final = {"key": "k", "operator": "Gt", "value": "5"}
NOT_CANONICAL: Final = "must be a valid decimal integer in canonical form"
REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def pod(name: str, **spec: Any) -> Object:
    spec = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def mounting(*options: str, **volume: Any) -> Object:
    mounts = [{"name": "v", "mountPath": "/v", "bindMountOptions": options}]
    return {
        "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}],
        "volumes": [{"name": "v", **(volume or {"emptyDir": {}})}],
    }


def with_status(client: HttpsClient, path: str, **status: Any) -> Reply:
    return client.call("PATCH", f"{path}/status", {"status": status}, MERGE)


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), ON, NODES) as client:
        ensure_service_account(client)
        yield client


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ['"": must be non-empty', '"": strconv.ParseInt: parsing "": invalid syntax']),
        ("+1", [f'"+1": {NOT_CANONICAL}']),
        ("01", [f'"01": {NOT_CANONICAL}']),
        ("-0", [f'"-0": {NOT_CANONICAL}']),
        ("x", [f'"x": {NOT_CANONICAL}', '"x": strconv.ParseInt: parsing "x": invalid syntax']),
        (
            "9223372036854775808",
            ['"9223372036854775808": strconv.ParseInt: parsing "9223372036854775808": value out of range'],
        ),
    ],
)
def test_compared_tolerations_need_integers(client: HttpsClient, value: str, expected: list[str]) -> None:
    found = causes(client.call("POST", PODS, pod("p", tolerations=[{**GREATER, "value": value}])))
    assert found == [f"spec.tolerations[0].value: Invalid value: {text}" for text in expected]


def test_tolerations_may_compare_numbers(client: HttpsClient) -> None:
    stored = created(
        client, PODS, pod("tolerating", tolerations=[GREATER, {**GREATER, "operator": "Lt", "value": "-7"}])
    )
    assert [toleration["value"] for toleration in stored["spec"]["tolerations"][:2]] == ["5", "-7"]
    more = {"spec": {"tolerations": [*stored["spec"]["tolerations"], {**GREATER, "value": "0"}]}}
    assert client.call("PATCH", f"{PODS}/tolerating", more, MERGE).status == 200


def test_tolerations_of_runtime_classes_do_not_compare(client: HttpsClient) -> None:
    body = {"metadata": {"name": "r"}, "handler": "h", "scheduling": {"tolerations": [GREATER]}}
    assert causes(client.call("POST", RUNTIME_CLASSES, body)) == [f"scheduling.tolerations[0].operator: {UNSUPPORTED}"]


def test_pods_with_user_namespaces_may_use_the_host_network(client: HttpsClient) -> None:
    stored = created(client, PODS, pod("users", hostUsers=False, hostNetwork=True))
    assert (stored["spec"]["hostUsers"], stored["spec"]["hostNetwork"]) == (False, True)
    assert causes(client.call("POST", PODS, pod("p", hostUsers=False, hostNetwork=True, hostPID=True))) == [
        "spec.HostPID: Forbidden: when `hostUsers` is false"
    ]


def test_bind_mount_options_are_validated(client: HttpsClient) -> None:
    stored = created(client, PODS, pod("binding", **mounting("noexec", "nodev", "nosuid")))
    mount = stored["spec"]["containers"][0]["volumeMounts"][0]
    assert mount["bindMountOptions"] == ["noexec", "nodev", "nosuid"]
    path = "spec.containers[0].volumeMounts[0].bindMountOptions"
    assert causes(client.call("POST", PODS, pod("p", **mounting("x", "x")))) == [
        f'{path}[0]: Unsupported value: "x": supported values: "nodev", "noexec", "nosuid"',
        f'{path}[1]: Unsupported value: "x": supported values: "nodev", "noexec", "nosuid"',
        f'{path}[1]: Duplicate value: "x"',
    ]
    assert causes(client.call("POST", PODS, pod("p", **mounting("nodev", image={"reference": "r"})))) == [
        f'{path}: Invalid value: ["nodev"]: bindMountOptions may not be used with image volumes'
    ]


def image_status(reference: str) -> list[Object]:
    mounts = [{"name": "v", "mountPath": "/v", "volumeStatus": {"image": {"imageRef": reference}}}]
    return [
        {
            "name": "c",
            "image": "i",
            "imageID": "x",
            "ready": True,
            "restartCount": 0,
            "volumeMounts": mounts,
            "state": {},
        }
    ]


def test_statuses_report_the_digest_of_image_volumes(client: HttpsClient) -> None:
    created(client, PODS, pod("image", **mounting(image={"reference": "r"})))
    reply = with_status(client, f"{PODS}/image", containerStatuses=image_status("sha256:1"))
    mount = reply.body["status"]["containerStatuses"][0]["volumeMounts"][0]
    assert mount["volumeStatus"] == {"image": {"imageRef": "sha256:1"}}
    path = "status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef"
    found = [
        causes(with_status(client, f"{PODS}/image", containerStatuses=image_status(text))) for text in ("", "x" * 257)
    ]
    assert found == [
        [f"{path}: Required value: imageRef must not be empty"],
        [f"{path}: Too long: may not be more than 256 bytes"],
    ]


def signing_request(name: str) -> Object:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, name),
    ]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    return {
        "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }


def health(**fields: Any) -> Object:
    return {"status": "Degraded", "reason": "Slow", **fields}


def conditions(*listed: Object) -> Object:
    return {"healthConditions": list(listed)}


INVALID: Final = conditions(
    health(reason="-"), health(status="x", message="m" * 1025), health(), health(), {"status": "", "reason": ""}
)


def invalid(path: str) -> list[str]:
    return [
        f'{path}.healthConditions[0].reason: Invalid value: "-": {REASON}',
        f'{path}.healthConditions[3]: Duplicate value: {{"status":"Degraded","reason":"Slow"}}',
        f'{path}.healthConditions[1].status: Unsupported value: "x": supported values: "DataLoss", "Degraded", '
        '"Inaccessible"',
        f"{path}.healthConditions[1].message: Too long: may not be more than 1024 bytes",
        f"{path}.healthConditions[4].status: Required value",
        f"{path}.healthConditions[4].reason: Required value",
    ]


def test_claims_report_their_health(client: HttpsClient) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    created(client, CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    reply = with_status(client, f"{CLAIMS}/c", healthStatus=conditions(health()))
    assert reply.body["status"]["healthStatus"]["healthConditions"] == [health()]
    found = causes(with_status(client, f"{CLAIMS}/c", healthStatus=INVALID))
    assert found == invalid("status.healthStatus")
    many = conditions(*(health(reason=f"r{i}") for i in range(17)))
    assert causes(with_status(client, f"{CLAIMS}/c", healthStatus=many)) == [
        "status.healthStatus.healthConditions: Too many: 17: must have at most 16 items"
    ]


def test_pods_report_the_health_of_their_volumes(client: HttpsClient) -> None:
    created(client, PODS, pod("health", **mounting()))
    healthy = {"name": "v", **conditions(health())}
    reply = with_status(client, f"{PODS}/health", volumeHealth=[healthy])
    assert [entry["healthConditions"] for entry in reply.body["status"]["volumeHealth"]] == [[health()]]
    path = "status.volumeHealth"
    assert causes(with_status(client, f"{PODS}/health", volumeHealth=[{"name": "w"}, {"name": ""}])) == [
        f'{path}[0].name: Not found: "w"',
        f"{path}[1].name: Required value",
    ]
    found = causes(with_status(client, f"{PODS}/health", volumeHealth=[{"name": "v", **INVALID}]))
    assert found == invalid(f"{path}[0]")


def test_csi_nodes_report_the_health_of_their_storage(client: HttpsClient) -> None:
    created(client, CSI_NODES, {"metadata": {"name": "n"}, "spec": {"drivers": []}})
    reply = with_status(client, f"{CSI_NODES}/n", storageHealth=[{"name": "d", "healthConditions": [HEALTH]}])
    assert reply.body["status"] == {
        "storageHealth": [{"name": "d", "healthConditions": [{**HEALTH, "lastTransitionTime": None}]}]
    }
    bad = {"status": "x", "reason": "", "message": "m" * 1025, "accessMode": "y", "volumeMode": "z"}
    long = {"status": "StorageDegraded", "reason": "r" * 257}
    listed = [{"name": "d", "healthConditions": [bad, long]}, {"name": "d"}, {"name": ""}]
    path = "status.storageHealth"
    assert causes(with_status(client, f"{CSI_NODES}/n", storageHealth=listed)) == [
        f'{path}[0].healthConditions[0].status: Unsupported value: "x": supported values: "StorageDegraded", '
        '"StorageUnreachable"',
        f"{path}[0].healthConditions[0].reason: Required value",
        f"{path}[0].healthConditions[0].message: Too long: may not be more than 1024 bytes",
        f'{path}[0].healthConditions[0].accessMode: Unsupported value: "y": supported values: "ReadOnlyMany", '
        '"ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
        f'{path}[0].healthConditions[0].volumeMode: Unsupported value: "z": supported values: "Filesystem", "Block"',
        f"{path}[0].healthConditions[1].reason: Too long: may not be more than 256 bytes",
        f'{path}[1]: Duplicate value: "d"',
        f"{path}[2].name: Required value",
    ]


def test_a_node_reports_the_health_of_its_own_storage_only(client: HttpsClient) -> None:
    node = client.with_headers({"Impersonate-User": "system:node:own", "Impersonate-Group": "system:nodes"})
    for name in ("own", "other"):
        created(client, CSI_NODES, {"metadata": {"name": name}, "spec": {"drivers": []}})
    storage = [{"name": "d", "healthConditions": [HEALTH]}]
    assert with_status(node, f"{CSI_NODES}/own", storageHealth=storage).status == 200
    assert with_status(node, f"{CSI_NODES}/other", storageHealth=storage).status == 403


def test_a_node_may_request_a_certificate_of_another_name(client: HttpsClient) -> None:
    node = client.with_headers({"Impersonate-User": "system:node:own", "Impersonate-Group": "system:nodes"})
    reply = node.call("POST", REQUESTS, {"metadata": {"name": "c"}, "spec": signing_request("system:node:other")})
    assert reply.status == 201, reply


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_stored_fields_of_disabled_gates_are_kept(form: str, tmp_path: Path) -> None:
    template = {
        "metadata": {"labels": LABELS},
        "spec": pod("", tolerations=[GREATER], hostUsers=False, hostNetwork=True)["spec"],
    }
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template},
    }
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "first", ON) as client:
            ensure_service_account(client)
            created(
                client, PODS, pod("p", tolerations=[GREATER], hostUsers=False, hostNetwork=True, **mounting("nodev"))
            )
            created(client, DEPLOYMENTS, deployment)
        with serving_over(etcd, form, tmp_path / "second") as client:
            kept = client.call("PATCH", f"{PODS}/p", LABELLED, MERGE)
            assert kept.status == 200, kept
            assert kept.body["spec"]["containers"][0]["volumeMounts"][0]["bindMountOptions"] == ["nodev"]
            assert client.call("PATCH", f"{DEPLOYMENTS}/d", LABELLED, MERGE).status == 200
            assert causes(
                client.call("POST", PODS, pod("q", tolerations=[GREATER], hostUsers=False, hostNetwork=True))
            ) == [
                "spec.hostNetwork: Forbidden: when `hostUsers` is false",
                f"spec.tolerations[0].operator: {UNSUPPORTED}",
            ]
            bare = created(client, PODS, pod("bare", **mounting("nodev")))["spec"]["containers"][0]["volumeMounts"]
            assert bare[0] == {"name": "v", "mountPath": "/v"}
