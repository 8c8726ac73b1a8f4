"""Validation errors without the gate DeclarativeValidationBeta: the same rules, in upstream's hand-written form.

The errors are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from support.forms import SQLITE, STOCK, feature_gates, serving
from support.https_client import MERGE, HttpsClient, causes, created
from tetrapod.machinery.gvk import Object

NAMESPACED: Final = "namespaces/default"
ROLES: Final = f"/apis/rbac.authorization.k8s.io/v1/{NAMESPACED}/roles"
BINDINGS: Final = f"/apis/rbac.authorization.k8s.io/v1/{NAMESPACED}/rolebindings"
CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
ATTACHMENTS: Final = "/apis/storage.k8s.io/v1/volumeattachments"
LEVELS: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
SLICES: Final = f"/apis/discovery.k8s.io/v1/{NAMESPACED}/endpointslices"
SCALERS: Final = f"/apis/autoscaling/v2/{NAMESPACED}/horizontalpodautoscalers"
CONTROLLERS: Final = f"/api/v1/{NAMESPACED}/replicationcontrollers"
CRON_JOBS: Final = f"/apis/batch/v1/{NAMESPACED}/cronjobs"
POLICY_BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
INGRESS_CLASSES: Final = "/apis/networking.k8s.io/v1/ingressclasses"
ADDRESSES: Final = "/apis/networking.k8s.io/v1/ipaddresses"
POLICIES: Final = f"/apis/networking.k8s.io/v1/{NAMESPACED}/networkpolicies"
RUNTIMES: Final = "/apis/node.k8s.io/v1/runtimeclasses"
CLAIMS: Final = f"/apis/resource.k8s.io/v1/{NAMESPACED}/resourceclaims"
TEMPLATES: Final = f"/apis/resource.k8s.io/v1/{NAMESPACED}/resourceclaimtemplates"
DEVICE_CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
RESOURCE_SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
POD: Final = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
REQUEST: Final = {"name": "r", "exactly": {"deviceClassName": "c"}}
DEVICE: Final = {"request": "r", "driver": "d.io", "pool": "p", "device": "d"}
ALLOCATION: Final = {"devices": {"results": [DEVICE]}}
LONG: Final = "a" * 70
NAME_IN_LOWER_CASE: Final = (
    'Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric'
)


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def clients(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HttpsClient, HttpsClient]]:
    """A server without the gate, and one with it."""
    off = feature_gates(["DeclarativeValidationBeta"], enabled=False)
    with ExitStack() as servers:
        both = [
            servers.enter_context(serving(request.param, tmp_path_factory.mktemp("server"), *flags))
            for flags in ((off,), ())
        ]
        for client in both:
            client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default", timeout=30)
        yield both[0], both[1]


@pytest.fixture
def off(clients: tuple[HttpsClient, HttpsClient]) -> HttpsClient:
    return clients[0]


@pytest.fixture
def default(clients: tuple[HttpsClient, HttpsClient]) -> HttpsClient:
    return clients[1]


def errors(client: HttpsClient, collection: str, fields: Object) -> list[str]:
    """Return the errors of a new object, each cut after 100 characters."""
    obj = {"metadata": {"name": "a"}, **fields}
    return [cause[:100] for cause in causes(client.call("POST", f"{collection}?dryRun=All", obj))]


def update_errors(client: HttpsClient, collection: str, fields: Object, changes: Object, part: str = "") -> list[str]:
    """Return the errors of a merge patch of a stored object, each cut after 100 characters."""
    name = "stored"
    path = f"{collection}/{name}"
    if client.call("GET", path).status == 404:
        created(client, collection, {"metadata": {"name": name}, **fields})
    return [cause[:100] for cause in causes(client.call("PATCH", f"{path}{part}?dryRun=All", changes, MERGE))]


def signing_request() -> str:
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return b64encode(
        request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
    ).decode()


def test_roles_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    rules: Object = {"rules": [{"verbs": []}]}
    assert errors(off, ROLES, rules) == [
        "rules[0].verbs: Required value: verbs must contain at least one value",
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
    ]
    assert errors(default, ROLES, rules) == [
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        "rules[0].verbs: Required value",
    ]


def test_role_bindings_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    group = "rbac.authorization.k8s.io"
    stored = {"roleRef": {"apiGroup": group, "kind": "Role", "name": "x"}}
    changes = {"roleRef": {"name": ""}, "subjects": [{"kind": "User", "name": ""}, {"kind": "X", "name": ""}]}
    kind = 'subjects[1].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", "Group"'
    immutable = f'roleRef: Invalid value: {{"APIGroup":"{group}","Kind":"Role","Name":""}}: field is immutable'[:100]
    names = [f"{path}.name: Required value" for path in ("roleRef", "subjects[0]", "subjects[1]")]
    assert update_errors(off, BINDINGS, stored, changes) == [*names, kind, immutable]
    assert update_errors(default, BINDINGS, stored, changes) == [names[0], kind, immutable, *names[1:]]


def test_storage_classes_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    stored = {"provisioner": "p.io/x", "parameters": {"a": "b"}}
    changes = {"provisioner": "q.io/x", "parameters": {"a": "c"}, "reclaimPolicy": "Retain"}
    assert update_errors(off, CLASSES, stored, changes) == [
        'parameters: Invalid value: {"a":"c"}: field is immutable',
        'provisioner: Invalid value: "q.io/x": field is immutable',
        'reclaimPolicy: Invalid value: "Retain": field is immutable',
    ]
    assert update_errors(default, CLASSES, stored, changes) == [
        f"{name}: Invalid value: null: field is immutable" for name in ("provisioner", "parameters", "reclaimPolicy")
    ]


def test_volume_attachments_have_the_hand_written_errors(off: HttpsClient) -> None:
    long = f"{LONG} b"
    spec = {"attacher": long, "nodeName": "x y", "source": {"persistentVolumeName": "A b"}}
    found = errors(off, ATTACHMENTS, {"spec": spec})
    assert [error.partition(": ")[0] for error in found] == [
        "spec.attacher",
        "spec.attacher",
        "spec.nodeName",
        "spec.source.persistentVolumeName",
    ]
    assert found[0] == "spec.attacher: Too long: may not be more than 63 bytes"


def test_priority_levels_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    missing = {"spec": {"type": "Limited"}}
    assert errors(off, LEVELS, missing) == [
        "spec.limited: Required value: must not be empty when type is Limited",
    ]
    assert errors(default, LEVELS, missing) == ["spec.limited: Required value"]
    limited = {"nominalConcurrencyShares": -1, "lendablePercent": 200, "limitResponse": {"type": ""}}
    assert errors(off, LEVELS, {"spec": {"type": "Limited", "limited": limited}}) == [
        "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
        "spec.limited.limitResponse.type: Required value",
        "spec.limited.lendablePercent: Invalid value: 200: must be between 0 and 100, inclusive",
    ]
    unknown = 'spec.type: Unsupported value: "X": supported values: "Exempt", "Limited"'
    other = {"spec": {"type": "X", "limited": {"limitResponse": {"type": "Reject"}}}}
    assert errors(off, LEVELS, other) == [unknown]
    assert errors(default, LEVELS, other) == [unknown, "spec.limited: Forbidden"]


def test_endpoint_slices_have_the_hand_written_errors(off: HttpsClient) -> None:
    stored = {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}]}
    changes = {"addressType": "IPv6", "endpoints": [{"addresses": []}]}
    assert update_errors(off, SLICES, stored, changes) == [
        "endpoints[0].addresses: Required value: must contain at least 1 address",
        'addressType: Invalid value: "IPv6": field is immutable',
    ]


def test_autoscalers_have_the_hand_written_errors(off: HttpsClient) -> None:
    spec = {"maxReplicas": 0, "scaleTargetRef": {"kind": "", "name": "b", "apiVersion": "apps/v1"}}
    assert errors(off, SCALERS, {"spec": spec}) == [
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        "spec.scaleTargetRef.kind: Required value",
    ]


def test_replication_controllers_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    controller = {
        "metadata": {"name": "A b"},
        "spec": {"replicas": -1, "minReadySeconds": -2, "selector": {"a": "c"}, "template": TEMPLATE},
    }
    name, labels, replicas, seconds = (
        "metadata.name: Invalid value: ",
        'spec.template.metadata.labels: Invalid value: {"a":"b"}: ',
        "spec.replicas: Invalid value: -1: ",
        "spec.minReadySeconds: Invalid value: -2: ",
    )
    for client, expected in (
        (off, (name, seconds, replicas, labels)),
        (default, (labels, name, replicas, seconds)),
    ):
        found = errors(client, CONTROLLERS, controller)
        assert len(found) == len(expected)
        for error, start in zip(found, expected, strict=True):
            assert error.startswith(start)


def test_cron_jobs_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    template = {"spec": {"template": {"spec": POD}}}
    job = {"metadata": {"name": LONG[:60]}, "spec": {"schedule": "", "jobTemplate": template}}
    name, schedule = (
        f'metadata.name: Invalid value: "{LONG[:60]}": must be no more than 52 characters'[:100],
        "spec.schedule: Required value",
    )
    assert errors(default, CRON_JOBS, job) == [name, schedule]
    spec = {"schedule": "", "startingDeadlineSeconds": -1, "concurrencyPolicy": "X", "jobTemplate": template}
    assert errors(off, CRON_JOBS, {"spec": spec}) == [
        schedule,
        "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
        'spec.concurrencyPolicy: Unsupported value: "X": supported values: "Allow", "Forbid", "Replace"',
    ]


def test_bindings_of_admission_policies_have_the_hand_written_errors(off: HttpsClient) -> None:
    spec = {"policyName": "", "validationActions": [], "paramRef": {}}
    assert errors(off, POLICY_BINDINGS, {"spec": spec}) == [
        "spec.policyName: Required value",
        "spec.paramRef: Required value: one of name or selector must be specified",
        "spec.paramRef.parameterNotFoundAction: Required value",
        "spec.validationActions: Required value: at least one validation action is required",
    ]
    both = {"policyName": "p", "validationActions": ["X", "Deny", "Deny", "Warn"]}
    found = errors(off, POLICY_BINDINGS, {"spec": both})
    assert [error.partition(": ")[0] for error in found] == [
        "spec.validationActions[0]",
        "spec.validationActions[2]",
        "spec.validationActions",
    ]


def test_networks_have_the_hand_written_errors(off: HttpsClient) -> None:
    parameters = {"kind": "", "name": "", "scope": "x"}
    assert errors(off, INGRESS_CLASSES, {"spec": {"controller": "", "parameters": parameters}}) == [
        "spec.controller: Required value",
        "spec.parameters.kind: Required value",
        "spec.parameters.name: Required value",
        'spec.parameters.scope: Unsupported value: "x": supported values: "Cluster", "Namespace"',
    ]
    peers = [{"ipBlock": {"cidr": ""}, "podSelector": {}}]
    policy = {"podSelector": {}, "ingress": [{"from": peers}], "policyTypes": ["X"]}
    found = errors(off, POLICIES, {"spec": policy})
    assert [error.partition(": ")[0] for error in found] == [
        "spec.ingress[0].from[0].ipBlock.cidr",
        "spec.ingress[0].from[0]",
        "spec.policyTypes[0]",
    ]
    reference = {"group": "", "resource": "", "name": "a"}
    assert errors(off, ADDRESSES, {"metadata": {"name": "192.0.2.1"}, "spec": {"parentRef": reference}}) == [
        "spec.parentRef.resource: Required value"
    ]


def test_runtime_classes_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    changes = {"handler": "b", "overhead": {"podFixed": {"cpu": "-1"}}}
    limit = 'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'
    assert update_errors(off, RUNTIMES, {"handler": "a"}, changes) == [
        limit,
        'handler: Invalid value: "b": field is immutable',
    ]
    assert update_errors(default, RUNTIMES, {"handler": "a"}, changes) == [
        limit,
        "handler: Invalid value: null: field is immutable",
    ]


def test_resource_claims_have_the_hand_written_errors(off: HttpsClient) -> None:
    requests = [
        {"name": "A"},
        {"name": "a", "exactly": {"deviceClassName": "", "allocationMode": "X", "tolerations": [{"effect": "Y"}]}},
        {"name": "a", "exactly": {"deviceClassName": "z"}},
    ]
    config = [{"opaque": {"driver": LONG, "parameters": {"a": "b"}}}]
    found = errors(off, CLAIMS, {"spec": {"devices": {"requests": requests, "config": config}}})
    at = "spec.devices.requests"
    assert [error.partition(": ")[0] for error in found] == [
        f"{at}[0].name",
        f"{at}[0]",
        f"{at}[1].exactly.deviceClassName",
        f"{at}[1].exactly.allocationMode",
        f"{at}[1].exactly.tolerations[0].effect",
        f"{at}[2]",
        "spec.devices.config[0].opaque.driver",
    ]
    assert found[-2:] == [
        f'{at}[2]: Duplicate value: "a"',
        "spec.devices.config[0].opaque.driver: Too long: may not be more than 63 bytes",
    ]
    spec = {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [{"name": "A", "exactly": {}}]}}}
    assert [error.partition(": ")[0] for error in errors(off, TEMPLATES, {"spec": spec})] == [
        "spec.metadata.name",
        "spec.spec.devices.requests[0].name",
        "spec.spec.devices.requests[0].exactly.deviceClassName",
    ]


def test_statuses_of_resource_claims_have_the_hand_written_errors(off: HttpsClient) -> None:
    stored = {"spec": {"devices": {"requests": [REQUEST]}}}
    wrong = [{**DEVICE, "driver": "A b", "pool": "p//q", "device": "X", "shareID": "x"}]
    found = update_errors(off, CLAIMS, stored, {"status": {"allocation": {"devices": {"results": wrong}}}}, "/status")
    at = "status.allocation.devices.results[0]"
    starts = (
        'driver: Invalid value: "A b": a lowercase RFC',
        'pool: Invalid value: "": a lowercase RFC',
        'device: Invalid value: "X": a lowercase RFC',
        'shareID: Invalid value: "x": error validating',
    )
    assert len(found) == len(starts)
    for error, start in zip(found, starts, strict=True):
        assert error.startswith(f"{at}.{start}")
    users = [{"resource": "pods", "name": name, "uid": "u"} for name in ("x", "y")]
    reserved = {"status": {"allocation": ALLOCATION, "reservedFor": users}}
    assert update_errors(off, CLAIMS, stored, reserved, "/status") == ['status.reservedFor[1]: Duplicate value: "u"']


def test_devices_have_the_hand_written_errors(off: HttpsClient) -> None:
    config = [{"opaque": {"driver": "A b", "parameters": {}}}]
    found = errors(off, DEVICE_CLASSES, {"spec": {"config": config, "extendedResourceName": "a"}})
    assert found == [
        f"spec.config[0].opaque.driver: {NAME_IN_LOWER_CASE}"[:100],
        'spec.extendedResourceName: Invalid value: "a": must be a valid extended resource name',
    ]
    pool = {"name": "", "resourceSliceCount": 1}
    taints = [{"key": "", "value": "b c", "effect": ""}]
    slice_ = {"driver": "", "pool": pool, "devices": [{"name": "D", "nodeName": "n", "taints": taints}]}
    assert [error.partition(": ")[0] for error in errors(off, RESOURCE_SLICES, {"spec": slice_})] == [
        "spec.driver",
        "spec.pool.name",
        "spec",
        "spec.devices[0].name",
        "spec.devices[0].taints[0].key",
        "spec.devices[0].taints[0].key",
        "spec.devices[0].taints[0].value",
        "spec.devices[0].taints[0].effect",
        "spec.devices[0]",
    ]


def test_signing_requests_have_the_hand_written_errors(off: HttpsClient, default: HttpsClient) -> None:
    request = {"spec": {"request": signing_request(), "signerName": "a.io/b", "usages": ["client auth"]}}
    conditions = [{"type": kind, "status": "True"} for kind in ("Approved", "Denied")]
    changes = {"status": {"conditions": conditions}}
    assert update_errors(off, REQUESTS, request, changes, "/approval") == [
        'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]
    (error,) = update_errors(default, REQUESTS, request, changes, "/approval")
    assert "mutually exclusive" not in error
