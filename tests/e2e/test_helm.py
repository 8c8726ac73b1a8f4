"""Helm installs, upgrades, rolls back and removes a chart with built-in and custom resources."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.helm import helm as support_helm
from support.kubectl import Kubectl

CHART = Path(__file__).parent / "charts/shop"

Helm = Callable[..., str]


@pytest.fixture
def helm(kubectl: Kubectl) -> Helm:
    return functools.partial(support_helm, kubectl=kubectl)


def test_a_release_is_installed_upgraded_rolled_back_and_removed(helm: Helm, kubectl: Kubectl) -> None:
    assert "STATUS: deployed" in helm("install", "shop", str(CHART))
    found = kubectl.json("get", "configmap", "shop")
    assert found["data"] == {"greeting": "hello", "kubernetes": "v1.37.1", "cronjobs": "yes"}
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


def test_a_dry_run_is_validated_by_the_server(helm: Helm, kubectl: Kubectl) -> None:
    assert "kind: Deployment" in helm("install", "shop", str(CHART), "--dry-run=server", "--skip-crds")
    assert "deployment" not in kubectl("get", "deployments", "-o", "name")


def test_upgrade_with_install_creates_a_missing_release(helm: Helm, kubectl: Kubectl) -> None:
    helm("upgrade", "--install", "shop", str(CHART))
    assert kubectl("get", "deployments", "-o", "name") == "deployment.apps/shop\n"
