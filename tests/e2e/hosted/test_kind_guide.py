"""docs/how-to/kind.md as a user follows it, in a cluster of kind that its commands create."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from e2e.hosted.hosts import delete_kind_cluster, kind_or_skip, node_image_options, registry_answers
from support import helm, kubectl
from support.compose import BASE, ETCD, REDIS, ROOT, build_stores, docker, docker_environment
from support.pages import commands, execute

pytestmark = [pytest.mark.kind, pytest.mark.timeout(2400)]

PAGE: Final = ROOT / "docs/how-to/kind.md"
IMAGES: Final = ("tetrapod:latest", "tetrapod-library:latest")
"""The images that the commands of the page build."""
STORES: Final = {"etcd": ETCD, "redis": REDIS}
"""Images made here, by the part of the chart's values that names those which the nodes pull elsewhere."""


@dataclass(frozen=True)
class User:
    """A directory that has the parts of a clone which the page uses, and an environment with its tools."""

    directory: Path
    environment: dict[str, str]

    def sh(self, script: str) -> str:
        return execute(script, self.directory, self.environment, timeout=1500)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    directory = tmp_path_factory.mktemp("user")
    for part in ("charts", "deploy"):
        (directory / part).symlink_to(ROOT / part)
    tools = directory / "tools"
    tools.mkdir()
    for name, path in (("kubectl", kubectl.executable()), ("helm", helm.executable())):
        (tools / name).symlink_to(path)
    _write_kind(tools / "kind", kind_or_skip())
    variables = {
        "HOME": str(directory),
        "PATH": f"{tools}:{os.environ['PATH']}",
        "KUBECONFIG": str(directory / "kubeconfig"),
        "COMPOSE_FILE": str(ROOT / "compose.yaml"),
    }
    if not registry_answers():
        variables["TETRAPOD_BASE"] = BASE
    return User(directory, {**docker_environment(), **variables})


def _write_kind(path: Path, kind: str) -> None:
    """Write a `kind` that has the option for a node image made here, if the published one cannot be pulled."""
    options = " ".join(node_image_options())
    path.write_text(f'#!/bin/sh\n[ "$1" != create ] || set -- "$@" {options}\nexec {kind} "$@"\n')
    path.chmod(0o755)


@pytest.fixture(scope="module")
def cluster(user: User) -> Iterator[User]:
    """Execute the commands that create the cluster, and finally those that remove everything."""
    if "tetrapod" in user.sh("kind get clusters 2>&1").split():
        pytest.skip("this machine has a kind cluster called tetrapod")
    present = [image for image in IMAGES if docker("image", "ls", "--quiet", image)]
    (create,), (remove,) = commands(PAGE, "## Create the cluster"), commands(PAGE, "## Remove everything")
    try:
        user.sh(create)
        if not registry_answers():
            _load_stores(user)
        yield user
        user.sh(remove)
        assert sorted(path.name for path in user.directory.iterdir() if path.name[0] != ".") == [
            *("charts", "deploy", "kubeconfig", "tools")
        ]
    finally:
        delete_kind_cluster(kind_or_skip(), "--name=tetrapod")
        user.sh("".join(f"docker image rm {image}\n" for image in IMAGES if image not in present))


def _load_stores(user: User) -> None:
    """Load etcd and redis into the node, under the names in the chart."""
    build_stores()
    values = yaml.safe_load((helm.CHART / "values.yaml").read_text())
    for part, built in STORES.items():
        image = values[part]["image"]
        published = f"{image['registry']}/{image['repository']}:{image['tag']}"
        user.sh(f"docker tag {built} {published} && kind load docker-image --name tetrapod {published}")
        user.sh(f"docker image rm {published}")


@pytest.fixture(scope="module")
def namespaces(cluster: User) -> str:
    """Execute the commands that install the chart, and return what the last of them prints."""
    (install,) = commands(PAGE, "## Install the chart")
    return cluster.sh(install)


def test_the_chart_is_installed_and_its_tests_pass(namespaces: str) -> None:
    assert "Succeeded" in namespaces
    assert re.search(r"^kube-system +Active", namespaces, re.MULTILINE)


def test_an_external_api_server_is_registered_and_used(cluster: User, namespaces: str) -> None:
    register, use = commands(PAGE, "## Add an external API server")
    assert "condition met" in cluster.sh(register)
    shown = cluster.sh(use)
    assert re.search(r"^moby-dick ", shown, re.MULTILINE)
    assert "KIND:       Book" in shown
