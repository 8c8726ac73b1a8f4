"""Helm installs, upgrades, rolls back and removes a chart with built-in and custom resources."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.kubectl import Kubectl

ROOT = Path(__file__).parents[2]
CHART = Path(__file__).parent / "charts/shop"

Helm = Callable[..., str]


@pytest.fixture(scope="session")
def executable() -> str:
    found = subprocess.run([ROOT / "tools/helm.sh"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("helm is not on this machine and cannot be built; tools/helm.sh says why")
    return found.stdout.strip()


@pytest.fixture
def helm(executable: str, kubectl: Kubectl) -> Helm:
    def run(*args: str) -> str:
        command = [executable, "--namespace", kubectl.namespace, *args]
        done = subprocess.run(command, env=kubectl.env(), capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, f"{' '.join(args)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def test_a_release_lives_and_dies(helm: Helm, kubectl: Kubectl) -> None:
    assert "STATUS: deployed" in helm("install", "shop", str(CHART))
    found = kubectl.json("get", "configmap", "shop")
    assert found["data"] == {"greeting": "hello", "kubernetes": "v1.37.1+tetrapod", "cronjobs": "yes"}
    assert kubectl.json("get", "article", "shop")["spec"] == {"size": 2}
    assert json.loads(helm("list", "-o", "json"))[0]["status"] == "deployed"

    helm("upgrade", "shop", str(CHART), "--set", "replicas=3,greeting=hi,size=5")
    assert kubectl.json("get", "deployment", "shop")["spec"]["replicas"] == 3
    assert kubectl.json("get", "article", "shop")["spec"] == {"size": 5}

    helm("rollback", "shop", "1")
    assert kubectl.json("get", "deployment", "shop")["spec"]["replicas"] == 1
    assert kubectl.json("get", "configmap", "shop")["data"]["greeting"] == "hello"
    assert kubectl.json("get", "article", "shop")["spec"] == {"size": 2}
    assert [entry["revision"] for entry in json.loads(helm("history", "shop", "-o", "json"))] == [1, 2, 3]
    assert "greeting: hello" in helm("get", "manifest", "shop")

    helm("uninstall", "shop", "--wait")
    left = kubectl("get", "configmap,deployment,service,article,secret", "-o", "name").split()
    assert left == ["configmap/kube-root-ca.crt"]


def test_what_would_be_installed_is_validated_by_the_server(helm: Helm, kubectl: Kubectl) -> None:
    assert "kind: Deployment" in helm("install", "shop", str(CHART), "--dry-run=server", "--skip-crds")
    assert "deployment" not in kubectl("get", "deployments", "-o", "name")


def test_an_upgrade_installs_what_is_not_there(helm: Helm, kubectl: Kubectl) -> None:
    helm("upgrade", "--install", "shop", str(CHART))
    assert kubectl("get", "deployments", "-o", "name") == "deployment.apps/shop\n"
