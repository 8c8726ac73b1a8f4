"""Migration from a stock kube-apiserver's etcd (protobuf) to Tetrapod's data directory, and back to a stock one."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.etcd import running_etcd
from support.https_client import HttpsClient
from support.kube_apiserver import running_over
from support.server import command, environment, running
from support.stock import binaries
from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig
from tetrapod.generic.certificates.pki import Pki, write_pki

pytestmark = [pytest.mark.stock, pytest.mark.timeout(900)]  # the import creates a million revisions in etcd
CRD = Path(__file__).parents[3] / "deploy/examples/operator-go/crds/sites.yaml"
HOUSE = "/api/v1/namespaces/house"
SERVICE = {"ports": [{"port": 80, "nodePort": 30090}], "type": "NodePort", "selector": {"app": "web"}}
CONTAINER = {"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "1"}}}
POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECTS: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces": {"metadata": {"name": "house"}},
    f"{HOUSE}/configmaps": {"metadata": {"name": "map"}, "data": {"a": "ü"}, "binaryData": {"b": "/w=="}},
    f"{HOUSE}/secrets": {"metadata": {"name": "secret"}, "stringData": {"p": "q"}},
    f"{HOUSE}/services": {"metadata": {"name": "web"}, "spec": SERVICE},
    "/apis/apps/v1/namespaces/house/deployments": {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": POD},
    },
    "/apis/rbac.authorization.k8s.io/v1/namespaces/house/roles": {
        "metadata": {"name": "role"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    "/apis/networking.k8s.io/v1/namespaces/house/networkpolicies": {
        "metadata": {"name": "none"},
        "spec": {"podSelector": {}},
    },
    "/apis/example.com/v1/namespaces/house/sites": {
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": {"name": "blog"},
        "spec": {"title": "Blog"},
    },
}


RESOURCES = "secrets", "sites.example.com", "customresourcedefinitions.apiextensions.k8s.io"


def encryption(path: Path, provider: str) -> Path:
    """Write an EncryptionConfiguration for some resources, with one key named after the file."""
    key = f"{{name: {path.stem}, secret: {b64encode(path.stem.encode().ljust(32, b'.')).decode()}}}"
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        f"- {{resources: [{', '.join(RESOURCES)}], providers: [{provider}: {{keys: [{key}]}}]}}\n"
    )
    return path


@contextmanager
def stock_server(directory: Path, pki: Pki, etcd: str, *flags: str) -> Iterator[HttpsClient]:
    own = ("--disable-admission-plugins=ServiceAccount", *flags)
    with running_over(etcd, binaries()["kube-apiserver"], directory, *own, pki=pki) as server:
        certificate, key = (file.read_bytes() for file in pki.admin)
        write_kubeconfig(
            directory / "admin", kubeconfig(server.url, ca=pki.ca.read_bytes(), certificate=certificate, key=key)
        )
        yield HttpsClient(directory / "admin")


def objects(client: HttpsClient) -> dict[str, Any]:
    """Return every object that the test created, and the objects that are created with it."""
    found = {path: client.call("GET", f"{path}/{body['metadata']['name']}").body for path, body in OBJECTS.items()}
    found["crd"] = client.call("GET", f"{DEFINITIONS}/sites.example.com").body
    return found


def without_version(found: dict[str, Any]) -> dict[str, Any]:
    return {path: {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}} for path, obj in found.items()}


def migrate(*arguments: str | Path) -> None:
    done = subprocess.run(
        command("migrate", *map(str, arguments)), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_all_objects_survive_the_migration_from_and_to_a_stock_server(tmp_path: Path) -> None:
    """Each of the three servers encrypts with another key; unencrypted objects are protobuf at first."""
    providers = {"oldest": "aesgcm", "ours": "secretbox", "newest": "aescbc"}
    files = {name: encryption(tmp_path / f"{name}.yaml", provider) for name, provider in providers.items()}
    flags = {name: (f"--encryption-provider-config={file}",) for name, file in files.items()}

    def move(source: str | Path, target: str | Path, before: str, after: str) -> None:
        sides = (("from", before), ("to", after))
        more = (f"--{side}-encryption-provider-config={files[name]}" for side, name in sides)
        migrate("--from", source, "--to", target, *more)

    pki = write_pki(tmp_path / "ours" / "pki", ["localhost", "127.0.0.1"])
    with running_etcd(tmp_path / "first") as first, running_etcd(tmp_path / "second") as second:
        with stock_server(tmp_path, pki, first.url, *flags["oldest"]) as client:
            assert client.call("POST", DEFINITIONS, yaml.safe_load(CRD.read_text())).status == 201
            for path, body in OBJECTS.items():
                client.until(lambda reply: reply.status in (201, 409), "POST", path, body)
            before = objects(client)
        assert first.value("/registry/secrets/house/secret").startswith(b"k8s:enc:aesgcm:v1:oldest:")
        assert first.value("/registry/configmaps/house/map").startswith(b"k8s\0")
        move(first.url, tmp_path / "ours", "oldest", "ours")
        with running(tmp_path / "ours", *flags["ours"]) as server:
            client = HttpsClient(server.kubeconfig)
            assert objects(client) == before  # including resource versions
            taken = client.call("POST", f"{HOUSE}/services", {"metadata": {"name": "other"}, "spec": SERVICE})
            assert (taken.status, "already allocated" in taken.message) == (422, True)
            assert client.call("POST", f"{HOUSE}/configmaps", {"metadata": {"name": "ours"}}).status == 201
            latest = int(client.call("GET", f"{HOUSE}/configmaps").body["metadata"]["resourceVersion"])
        move(tmp_path / "ours", second.url, "ours", "newest")
        with stock_server(tmp_path, pki, second.url, *flags["newest"]) as client:
            after = objects(client)
            assert without_version(after) == without_version(before)
            assert client.call("GET", f"{HOUSE}/configmaps/ours").status == 200
            assert min(int(obj["metadata"]["resourceVersion"]) for obj in after.values()) > latest
            taken = client.call("POST", f"{HOUSE}/services", {"metadata": {"name": "other"}, "spec": SERVICE})
            assert (taken.status, "already allocated" in taken.message) == (422, True)
