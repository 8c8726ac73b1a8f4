"""Tests of the connection of an aggregated server to its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tetrapod.generic.aggregated import Cluster
from tetrapod.generic.aggregated import cluster as cluster_module

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://localhost:1"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""


def test_a_kubeconfig_is_read_under_both_names(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    cluster = Cluster.from_kubeconfig(str(path))
    assert (cluster.url, cluster.token) == ("https://localhost:1", "secret")
    with pytest.warns(DeprecationWarning, match=r"use Cluster\.from_kubeconfig"):
        assert Cluster.of_kubeconfig(str(path)) == cluster


def test_a_service_account_is_read_under_both_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    monkeypatch.setattr(cluster_module, "MOUNT", tmp_path)
    cluster = Cluster.in_cluster()
    assert (cluster.url, cluster.token_file) == ("https://kubernetes.default.svc", str(tmp_path / "token"))
    with pytest.warns(DeprecationWarning, match=r"use Cluster\.in_cluster"):
        assert Cluster.around_this_pod() == cluster
