"""Clusters that can host the chart: one of kind, and the two nodes of `make cluster`.

Each is a context that yields kubectl of an administrator, and has the images of the chart on its nodes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from cluster import network
from cluster.settings import HOST_INTERFACE, Paths
from support.cluster import cluster_command
from support.compose import ROOT
from support.kubectl import Kubectl

_NAME: Final = "tetrapod-e2e"


@dataclass(frozen=True)
class Host:
    """A cluster that hosts the chart.

    Attributes:
        kubectl: of an administrator.
        enforces_policies: whether its network enforces NetworkPolicies.
    """

    kubectl: Kubectl
    enforces_policies: bool


@contextmanager
def kind_cluster(directory: Path, images: Sequence[str]) -> Iterator[Host]:
    """Create a cluster of kind, and delete it afterwards.

    The test is skipped, with the reason, if kind cannot be built or its node image cannot be downloaded.
    """
    kind, kubeconfig = _kind_or_skip(), directory / "kind.kubeconfig"
    made = subprocess.run(
        [kind, "create", "cluster", "--name", _NAME, "--kubeconfig", str(kubeconfig), "--wait", "180s"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        if made.returncode != 0:
            why = [line for line in made.stderr.splitlines() if "rror" in line] or made.stderr.splitlines()
            pytest.skip(
                f"not applicable: no kind cluster can be made here: {why[-1].strip() if why else made.returncode}"
            )
        subprocess.run([kind, "load", "docker-image", "--name", _NAME, *images], check=True, timeout=600)
        yield Host(Kubectl(directory, kubeconfig), enforces_policies=True)
    finally:
        subprocess.run([kind, "delete", "cluster", "--name", _NAME], capture_output=True, check=False)


def _kind_or_skip() -> str:
    found = subprocess.run([ROOT / "tools/kind.sh"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip(
            f"not applicable: kind is not on this machine and cannot be built: {found.stderr.strip().splitlines()[-1]}"
        )
    return found.stdout.strip()


@contextmanager
def two_nodes(directory: Path, images: Sequence[str]) -> Iterator[Host]:
    """Start the cluster of `make cluster`, whose API server is Tetrapod in one process, and end it afterwards."""
    if os.geteuid() != 0:
        pytest.skip("only root can start nodes")
    if network.exists():
        pytest.skip(f"this machine has a cluster already: it has the interface {HOST_INTERFACE}")
    try:
        for command in (("up",), ("load", *images)):
            done = cluster_command(*command)
            assert done.returncode == 0, done.stdout + done.stderr
        yield Host(Kubectl(directory, Paths.default().kubeconfig), enforces_policies=False)
    finally:
        ended = cluster_command("down")
        assert ended.returncode == 0, ended.stdout + ended.stderr
