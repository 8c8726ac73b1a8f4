"""Objects that a former release stored as v1, of kinds that are stored in an older version now, remain usable."""

from __future__ import annotations

import asyncio
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from support.etcd import running_etcd
from support.https_client import APPLY, MERGE, HttpsClient
from support.server import running
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

pytestmark = pytest.mark.long

PREFIX: Final = "/registry/"
ENABLED: Final = "--runtime-config=api/beta=true,api/alpha=true"
YAML: Final = {"accept": "application/yaml"}
OBJECTS: Final = ("read", "put", "patched", "applied", "kept", "deleted", "collected")


_CREATED: Final = now_rfc3339()
"""Old requests for certificates of pods would be deleted."""
_FINISHED: Final = {
    "type": "Failed",
    "status": "True",
    "lastTransitionTime": _CREATED,
    "reason": "Former",
    "message": "The controller leaves the migration alone.",
}


def _stub_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return b64encode(request.public_bytes(Encoding.DER)).decode()


class Kind(NamedTuple):
    """A kind whose storage version changed, with the spec of its objects and the versions besides v1."""

    group: str
    resource: str
    kind: str
    namespaced: bool
    spec: Object
    stored: str
    older: tuple[str, ...]
    selector: str = "metadata.name=read"
    more: Mapping[str, Any] = MappingProxyType({})
    only_older: tuple[str, ...] = ()

    def expected(self, version: str) -> Object:
        """Return the spec in a version. Versions before v1 do not omit the fields that v1 lacks."""
        return self.spec if version == "v1" else {**self.spec, **dict.fromkeys(self.only_older)}

    def path(self, version: str, name: str = "") -> str:
        place = "namespaces/default/" if self.namespaced else ""
        return f"/apis/{self.group}/{version}/{place}{self.resource}" + (f"/{name}" if name else "")

    def key(self, name: str) -> str:
        return f"{PREFIX}{self.resource}/{'default/' if self.namespaced else ''}{name}"

    def value(self, name: str) -> bytes:
        """Return the object as a former release stored it."""
        managed = {
            "manager": "former",
            "operation": "Update",
            "apiVersion": f"{self.group}/v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {f"f:{field}": {} for field in self.spec}},
        }
        metadata: Object = {
            "name": name,
            **({"namespace": "default"} if self.namespaced else {}),
            "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.{self.resource}")),
            "generation": 1,
            "creationTimestamp": _CREATED,
            "labels": {"former": name},
            "managedFields": [managed],
        }
        if name == "collected":
            metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "gone"}]
        return orjson.dumps(
            {"kind": self.kind, "apiVersion": f"{self.group}/v1", "metadata": metadata, "spec": self.spec, **self.more}
        )


KINDS: Final = (
    Kind(
        "resource.k8s.io",
        "devicetaintrules",
        "DeviceTaintRule",
        False,
        {"taint": {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}},
        "v1beta2",
        ("v1beta2", "v1alpha3"),
    ),
    Kind(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        "StorageVersionMigration",
        False,
        {"resource": {"group": "apps.example.com", "resource": "none"}},
        "v1beta1",
        ("v1beta1",),
        more={"status": {"conditions": [_FINISHED]}},
    ),
    Kind(
        "certificates.k8s.io",
        "clustertrustbundles",
        "ClusterTrustBundle",
        False,
        {"trustBundle": Authority.create("former").certificate_pem.decode()},
        "v1beta1",
        ("v1beta1",),
        "spec.signerName=",
    ),
    Kind(
        "certificates.k8s.io",
        "podcertificaterequests",
        "PodCertificateRequest",
        True,
        {
            "signerName": "example.com/signer",
            "podName": "p",
            "podUID": "1",
            "serviceAccountName": "default",
            "serviceAccountUID": "2",
            "nodeName": "n",
            "nodeUID": "3",
            "maxExpirationSeconds": 86400,
            "stubPKCS10Request": _stub_request(),
        },
        "v1beta1",
        ("v1beta1",),
        "spec.nodeName=n,spec.podName=p",
        only_older=("pkixPublicKey", "proofOfPossession"),
    ),
)


class Prepared(NamedTuple):
    """A server over a prepared store, and a function that returns the stored value of a key."""

    client: HttpsClient
    yaml: HttpsClient
    old: bool
    stored: Callable[[str], bytes] | None


@pytest.fixture(scope="module", params=["sqlite", "sqlite with older versions", "etcd with older versions"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    directory = tmp_path_factory.mktemp("former")
    values = {kind.key(name): kind.value(name) for kind in KINDS for name in OBJECTS}
    flags = [ENABLED] if "older" in request.param else []
    if request.param.startswith("sqlite"):
        asyncio.run(_fill(directory / "tetrapod.db", values))
        with running(directory, *flags) as server:
            yield Prepared(
                HttpsClient(server.kubeconfig), HttpsClient(server.kubeconfig, headers=YAML), bool(flags), None
            )
        return
    with running_etcd(directory / "etcd") as etcd:
        for key, value in values.items():
            etcd.put(key, value)
        with running(directory, f"--etcd-servers={etcd.url}", *flags) as server:
            yield Prepared(
                HttpsClient(server.kubeconfig), HttpsClient(server.kubeconfig, headers=YAML), bool(flags), etcd.value
            )


async def _fill(path: Path, values: dict[str, bytes]) -> None:
    backend = SqliteBackend(path)
    for key, value in values.items():
        await backend.put_if(key, value, 0)
    await backend.close()


def versions(prepared: Prepared, kind: Kind) -> tuple[str, ...]:
    return ("v1", *kind.older) if prepared.old else ("v1",)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_they_are_read_listed_watched_and_selected_in_each_version(prepared: Prepared, kind: Kind) -> None:
    client = prepared.client
    for version in versions(prepared, kind):
        api_version = f"{kind.group}/{version}"
        read = client.call("GET", kind.path(version, "read")).body
        assert (read["apiVersion"], read["spec"]) == (api_version, kind.expected(version))
        text = prepared.yaml.call("GET", kind.path(version, "read")).body
        assert f"apiVersion: {api_version}\nkind: " in text
        assert all((f"{name}: null\n" in text) == (version != "v1") for name in kind.only_older)
        for query in (
            "labelSelector=former%3Dread",
            f"labelSelector=former%3Dread&fieldSelector={quote(kind.selector)}",
        ):
            listed = client.call("GET", f"{kind.path(version)}?{query}").body
            assert (listed["apiVersion"], [item["metadata"]["name"] for item in listed["items"]]) == (
                api_version,
                ["read"],
            )
            assert listed["items"][0]["spec"] == kind.expected(version)
            event = client.call("GET", f"{kind.path(version)}?watch=true&timeoutSeconds=1&{query}").body
            assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", api_version), event


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_they_are_updated_in_each_version(prepared: Prepared, kind: Kind) -> None:
    client = prepared.client
    for version in versions(prepared, kind)[::-1]:
        api_version = f"{kind.group}/{version}"
        kept = client.call("GET", kind.path(version, "kept")).body
        same = client.call("PUT", kind.path(version, "kept"), kept)
        assert (same.status, same.body["apiVersion"]) == (200, api_version), same.message
        assert same.body["metadata"]["managedFields"] == kept["metadata"]["managedFields"]
        obj = client.call("GET", kind.path(version, "put")).body
        obj["metadata"]["labels"]["put"] = version
        reply = client.call("PUT", kind.path(version, "put"), obj)
        assert (reply.status, reply.body["apiVersion"]) == (200, api_version), reply.message
        labels: Object = {"metadata": {"labels": {"patched": version}}}
        reply = client.call("PATCH", kind.path(version, "patched"), labels, MERGE)
        assert (reply.status, reply.body["apiVersion"]) == (200, api_version), reply.message
        assert reply.body["spec"] == kind.expected(version)
        managers = {entry["manager"]: entry for entry in reply.body["metadata"]["managedFields"]}
        assert managers["former"]["apiVersion"] == f"{kind.group}/v1"
        declared = {"apiVersion": api_version, "kind": kind.kind, **labels}
        reply = client.call("PATCH", f"{kind.path(version, 'applied')}?fieldManager=test", declared, APPLY)
        assert (reply.status, reply.body["apiVersion"]) == (200, api_version), reply.message
    if prepared.stored is not None:
        for name in ("kept", "put", "patched", "applied"):
            assert orjson.loads(prepared.stored(kind.key(name)))["apiVersion"] == f"{kind.group}/{kind.stored}", name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_objects_of_a_former_version_are_deleted_and_garbage_collected(prepared: Prepared, kind: Kind) -> None:
    version = versions(prepared, kind)[-1]
    deleted = prepared.client.call("DELETE", kind.path(version, "deleted"))
    assert deleted.status == 200
    if deleted.body["kind"] != "Status":
        assert deleted.body["apiVersion"] == f"{kind.group}/{version}"
    prepared.client.until(lambda reply: reply.status == 404, "GET", kind.path(version, "deleted"))
    prepared.client.until(lambda reply: reply.status == 404, "GET", kind.path(version, "collected"))
