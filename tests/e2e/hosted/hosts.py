"""Clusters that can host the chart: one of kind, and the two nodes of `make cluster`.

Each is a context that yields kubectl of an administrator, and has the images of the chart on its nodes.
"""

from __future__ import annotations

import functools
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
from kindnode.node_image import node_image
from support.cluster import cluster_command
from support.compose import ROOT
from support.kubectl import Kubectl

_NAME: Final = "tetrapod-e2e"
_PUBLISHED: Final = "docker.io/kindest/node:v1.34.0"
"""Any of the published node images."""


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

    Its node image is the published one, or one that is made here if that cannot be pulled. The test is skipped, with
    the reason, if the machine has no kind and cannot make such an image.
    """
    kind, image, kubeconfig = kind_or_skip(), node_image_options(), directory / "kind.kubeconfig"
    options = ("--name", _NAME, "--kubeconfig", str(kubeconfig))
    try:
        _run(kind, "create", "cluster", *options, *image, "--wait", "180s")
        _run(kind, "load", "docker-image", "--name", _NAME, *images)
        yield Host(Kubectl(directory, kubeconfig), enforces_policies=True)
    finally:
        delete_kind_cluster(kind, *options)


def delete_kind_cluster(kind: str, *options: str) -> None:
    """Delete a cluster of kind, and Docker's network of all such clusters if it was the last one."""
    _run(kind, "delete", "cluster", *options)
    subprocess.run(["docker", "network", "rm", "kind"], capture_output=True, check=False)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"


def node_image_options() -> list[str]:
    """Return the options of `kind create cluster`: none if it can pull its image, else one that names an image made
    here. The test is skipped if that takes root and this process has not.
    """
    if registry_answers():
        return []
    if os.geteuid() != 0:
        pytest.skip("not applicable: the node image cannot be pulled, and only root can make one")
    return [f"--image={node_image()}"]


@functools.cache
def registry_answers() -> bool:
    """Return whether Docker reaches the registry that has kind's node images."""
    command = ["docker", "manifest", "inspect", _PUBLISHED]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0


def kind_or_skip() -> str:
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
