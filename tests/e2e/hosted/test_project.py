"""A project of `tetrapod init` in the cluster of `make cluster`: built, deployed and removed as its README says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.hosted.hosts import two_nodes
from support.compose import docker, docker_stand_in
from support.kubectl import Kubectl
from support.scaffold import Project, new_project, use

pytestmark = [pytest.mark.stock, pytest.mark.timeout(1800)]

IMAGE = "registry.example.com/library:0.1.0"


@pytest.fixture(scope="module")
def project(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Yield a project whose image is on the nodes, with the kubeconfig of the cluster."""
    directory = tmp_path_factory.mktemp("project")
    made = new_project(wheel, directory)
    path = f"{docker_stand_in(directory)}:{made.env()['PATH']}"
    replace(made, variables={"PATH": path}).shell(made.block("docker build"))
    try:
        with two_nodes(directory, (IMAGE,)) as host:
            yield replace(made, variables={"KUBECONFIG": str(host.kubectl.kubeconfig)})
    finally:
        docker("image", "rm", "--force", IMAGE)


def test_a_project_is_deployed_and_removed_as_its_readme_says(project: Project) -> None:
    kubectl = Kubectl(project.directory, Path(project.variables["KUBECONFIG"]))
    push, *deployment = project.block("docker push").splitlines()
    assert push == f"docker push {IMAGE}"  # the nodes have the image without a registry
    project.shell("\n".join(deployment))
    kubectl("apply", "-f", str(project.directory / "manifests/samples"))
    use(kubectl, "books.v1alpha1.library.example.com", "Book")
    project.shell(project.block("kubectl delete -f manifests/apiservices.yaml -f manifests/server"))
    assert "library.example.com" not in kubectl("get", "apiservices", "-o", "name")
