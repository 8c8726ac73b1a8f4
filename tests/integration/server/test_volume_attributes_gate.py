"""The gate VolumeAttributesClass, which can be switched off while v1.35 or v1.34 is emulated.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, SQLITE, STOCK, serving, serving_over
from support.https_client import MERGE, HttpsClient, causes, created, patched
from tetrapod.machinery.gvk import Object

OFF: Final = ("--emulated-version=1.35", "--feature-gates=VolumeAttributesClass=false")
VOLUMES: Final = "/api/v1/persistentvolumes"
CLAIMS: Final = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES: Final = "/apis/storage.k8s.io/v1/volumeattributesclasses"
SETS: Final = "/apis/apps/v1/namespaces/default/statefulsets"
QUOTAS: Final = "/api/v1/namespaces/default/resourcequotas"
ROLE: Final = (
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:volumeattributesclass-protection-controller"
)
GOLD: Final = {"metadata": {"name": "gold"}, "driverName": "a.example.com", "parameters": {"iops": "1"}}
FIELD: Final = "volumeAttributesClassName"
DISABLED: Final = (
    f"spec.{FIELD}: Forbidden: update is forbidden when the VolumeAttributesClass feature gate is disabled"
)


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("off"), *OFF) as client:
        yield client


def claim_spec(**fields: Any) -> Object:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **fields}


def volume_spec(**fields: Any) -> Object:
    source = {"driver": "a.example.com", "volumeHandle": "h"}
    return {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": source, **fields}


def named(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(("path", "spec"), [(VOLUMES, volume_spec()), (CLAIMS, claim_spec())])
def test_new_classes_of_volumes_and_claims_are_dropped(client: HttpsClient, path: str, spec: Object) -> None:
    assert FIELD not in created(client, path, named("dropped", {**spec, FIELD: "Not a name"}))["spec"]
    assert FIELD not in patched(client, f"{path}/dropped", {"spec": {FIELD: "gold"}})["spec"]


def test_classes_in_the_status_of_claims_are_dropped(client: HttpsClient) -> None:
    created(client, CLAIMS, named("status", claim_spec()))
    modification = {"status": "Pending", "targetVolumeAttributesClassName": "gold"}
    status = {"currentVolumeAttributesClassName": "gold", "modifyVolumeStatus": modification}
    stored = patched(client, f"{CLAIMS}/status/status", {"status": status})["status"]
    assert stored["phase"] == "Pending"
    assert stored.keys() & status.keys() == set()


def test_names_of_classes_in_templates_are_not_validated(client: HttpsClient) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    claim = {"metadata": {"name": "data"}, "spec": claim_spec(**{FIELD: "Not a name"})}
    spec = {"selector": {"matchLabels": labels}, "template": template, "volumeClaimTemplates": [claim]}
    stored = created(client, SETS, named("templates", spec))
    assert stored["spec"]["volumeClaimTemplates"][0]["spec"][FIELD] == "Not a name"


def test_new_classes_get_no_finalizer(client: HttpsClient) -> None:
    reply = client.call("POST", CLASSES, GOLD)
    assert (reply.status, "finalizers" in reply.body["metadata"]) == (201, False)


def test_the_role_of_the_protection_controller_is_missing(client: HttpsClient) -> None:
    assert client.call("GET", ROLE).status == 404


def test_with_the_gate_classes_get_a_finalizer(tmp_path: Path) -> None:
    with serving(SQLITE, tmp_path, "--emulated-version=1.35") as client:
        reply = client.call("POST", CLASSES, GOLD)
        assert (reply.status, reply.body["metadata"]["finalizers"]) == (201, ["kubernetes.io/vac-protection"])
        assert client.call("GET", ROLE).status == 200


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_stored_classes_are_kept_and_do_not_change(form: str, tmp_path: Path) -> None:
    json = "--storage-media-type=application/json"
    class_of = {FIELD: "gold"}
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "first", "--emulated-version=1.35", json) as client:
            created(client, VOLUMES, named("kept", volume_spec(**class_of)))
            created(client, CLAIMS, named("kept", claim_spec(**class_of)))
            status = {"phase": "Bound", "currentVolumeAttributesClassName": "gold"}
            patched(client, f"{CLAIMS}/kept/status", {"status": status})
        with serving_over(etcd, form, tmp_path / "second", *OFF, json) as client:
            for path in (f"{VOLUMES}/kept", f"{CLAIMS}/kept"):
                kept = patched(client, path, {"metadata": {"labels": {"a": "b"}}})
                assert kept["spec"][FIELD] == "gold"
                assert causes(client.call("PATCH", path, {"spec": {FIELD: "silver"}}, MERGE)) == [DISABLED]
            assert causes(client.call("PATCH", f"{VOLUMES}/kept", {"spec": {FIELD: None}}, MERGE)) == [
                DISABLED,
                f"spec.{FIELD}: Forbidden: update from non-nil value to nil is forbidden",
            ]
            assert causes(client.call("PATCH", f"{CLAIMS}/kept", {"spec": {FIELD: None}}, MERGE)) == [
                DISABLED,
                f"spec.{FIELD}: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is "
                "not nil",
            ]
            changed = {"currentVolumeAttributesClassName": "silver", "modifyVolumeStatus": {"status": "Pending"}}
            stored = patched(client, f"{CLAIMS}/kept/status", {"status": changed})["status"]
            assert (stored["currentVolumeAttributesClassName"], "modifyVolumeStatus" in stored) == ("silver", False)


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_claims_match_no_quota_of_a_class(form: str, tmp_path: Path) -> None:
    json = "--storage-media-type=application/json"
    selector = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "first", "--emulated-version=1.35", json) as client:
            created(client, CLAIMS, named("gold", claim_spec(**{FIELD: "gold"})))
            hard = {"requests.storage": "1Gi"}
            quota = {"hard": hard, "scopeSelector": {"matchExpressions": [selector]}}
            created(client, QUOTAS, named("gold", quota))
            patched(client, f"{QUOTAS}/gold/status", {"status": {"hard": hard, "used": {"requests.storage": "1Gi"}}})
            claim = named("more", claim_spec(**{FIELD: "gold"}))
            assert client.until(lambda reply: reply.status == 403, "POST", f"{CLAIMS}?dryRun=All", claim).status == 403
        with serving_over(etcd, form, tmp_path / "second", *OFF, json) as client:
            reply = client.until(lambda reply: reply.status != 403, "POST", f"{CLAIMS}?dryRun=All", claim)
            assert reply.status == 201
