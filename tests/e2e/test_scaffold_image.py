"""The image of a project of `tetrapod init`, in a container beside an API server without nodes, as its README says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.compose import docker, docker_stand_in
from support.scaffold import Project, new_project, use
from support.server import free_port
from support.waiting import until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def project(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    directory = tmp_path_factory.mktemp("project")
    made = new_project(wheel, directory, f"library{free_port()}")
    programs = docker_stand_in(directory)
    made = replace(made, variables={"PATH": f"{programs}:{made.env()['PATH']}", "KUBECONFIG": str(made.kubeconfig)})
    try:
        with made.api_server():
            made.shell(made.block("docker build"))
            yield made
    finally:
        docker("rm", "--force", "--volumes", made.name)
        docker("volume", "rm", "--force", f"{made.name}-data")
        docker("image", "rm", "--force", f"registry.example.com/{made.name}:0.1.0")


def test_the_image_serves_the_project_beside_an_api_server_without_nodes(project: Project) -> None:
    project.shell(project.block("kubectl apply -f manifests/server/account.yaml"))
    kubectl = project.kubectl
    assert "book-sample" in kubectl("get", "books")
    use(kubectl, "books.v1alpha1.library.example.com", "Book")
    assert " 0 failed" in project.check_apiserver("library.example.com/v1alpha1")

    docker("restart", project.name)
    restarted = until(lambda: kubectl.run("get", "books", "-o", "name"), lambda done: done.returncode == 0, timeout=60)
    assert restarted.stdout.split() == ["book.library.example.com/book-sample"]

    project.shell(project.block("kubectl delete -f manifests/apiservices.yaml -f manifests/local"))
    assert docker("ps", "--all", "--quiet", f"--filter=name=^{project.name}$") == ""
    assert docker("volume", "ls", "--quiet", f"--filter=name={project.name}") == ""
    assert "library.example.com" not in kubectl("get", "apiservices", "-o", "name")


def test_the_image_contains_no_sources_and_does_not_run_as_root(project: Project) -> None:
    image = f"registry.example.com/{project.name}:0.1.0"
    assert docker("run", "--rm", "--entrypoint=sh", image, "-c", "id -u; ls -d /src || true") == "65532\n"
