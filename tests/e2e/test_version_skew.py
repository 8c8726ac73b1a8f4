"""Services of the release before and of this one run together over one etcd, once auth is of this one: it says what the others may.

The release before is the newest tag below this commit, or the revision that TETRAPOD_PREVIOUS names.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest

from support.kubectl import wait_established
from support.services import NAMES, Services
from support.wire import Client

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
TOKENS = ROOT / "tests" / "contract" / "tokens.csv"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CRD = {
    "metadata": {"name": "widgets.skew.example.com"},
    "spec": {
        "group": "skew.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}


def git(*args: str) -> bytes:
    return subprocess.run(["git", *args], cwd=ROOT, check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `services` folder of the release before."""
    try:
        revision = os.environ.get("TETRAPOD_PREVIOUS") or git("describe", "--tags", "--abbrev=0", "HEAD^").decode().strip()
        archive = git("archive", revision, "services")
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("no release before this one is known: TETRAPOD_PREVIOUS may name a revision")
    directory = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(directory, filter="data")
    return directory / "services"


@pytest.mark.parametrize("old", [("aggregator", "extensions"), ("core",)], ids=" and ".join)
def test_two_releases_serve_together(previous: Path, tmp_path: Path, old: tuple[str, ...]) -> None:
    services = Services(tmp_path)
    services.etcd.start()
    try:
        for name in NAMES:
            flags = (f"--token-auth-file={TOKENS}",) if name == "auth" else ()
            services.start(name, *flags, env={"PYTHONPATH": str(previous)} if name in old else None)
        for name in NAMES:
            services.wait_ready(name)
        with Client(services) as client:  # type: ignore[arg-type]
            session(client, services)
    finally:
        services.stop_all(*services.processes)
        services.etcd.stop()


def session(client: Client, services: Services) -> None:
    assert client("POST", CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}}).status == 201
    patch = {"Content-Type": "application/merge-patch+json"}
    assert client("PATCH", f"{CONFIG_MAPS}/c", {"data": {"c": "d"}}, patch).json["data"] == {"a": "b", "c": "d"}
    kubectl(services, "apply", "-f", "-", stdin={"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **CRD})
    wait_established(partial(kubectl, services), "widgets.skew.example.com")
    widget = {"apiVersion": "skew.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert client("POST", "/apis/skew.example.com/v1/namespaces/default/widgets", widget).status == 201
    assert client("POST", "/api/v1/namespaces", {"metadata": {"name": "skew"}}).status == 201
    kubectl(services, "wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    token = kubectl(services, "create", "token", "default").strip()
    with Client(services, token=token) as account:  # type: ignore[arg-type]
        assert account("GET", CONFIG_MAPS).status == 403
        binding = ("rolebinding", "skew", "--clusterrole=view", "--serviceaccount=default:default", "--namespace=default")
        kubectl(services, "create", *binding)
        kubectl(services, "wait", "--for=create", "rolebinding/skew", "--timeout=10s")
        assert account("GET", CONFIG_MAPS).status == 200
    kubectl(services, "delete", "namespace", "skew", "--timeout=60s")


def kubectl(services: Services, *args: str, stdin: object = None) -> str:
    argv = ["kubectl", "--kubeconfig", str(services.kubeconfig), *args]
    text = None if stdin is None else json.dumps(stdin)
    done = subprocess.run(argv, input=text, check=False, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    return done.stdout
