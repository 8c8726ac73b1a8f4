"""The README and the how-to guides executed: their commands, configuration files and programs as they are written.

Ports are free ones. Commands for machines that the test does not have are left out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.etcd import running_etcd
from support.kubectl import executable
from support.pages import ROOT, block, execute
from support.server import SERVICES, running

GUIDES = ROOT / "docs/how-to"


@dataclass(frozen=True)
class Reader:
    """A user who executes commands of a page in a directory, with the programs of this checkout.

    Attributes:
        directory: the working directory. The data of the server is below `data`.
    """

    directory: Path

    def __post_init__(self) -> None:
        programs = self.directory / "programs"
        programs.mkdir(exist_ok=True)
        tetrapod = programs / "tetrapod"
        tetrapod.write_text(f'#!/bin/sh\nexec {sys.executable} -m tetrapod.cli.main "$@"\n')
        tetrapod.chmod(0o755)

    def run(self, commands: str) -> str:
        """Run commands of a page, all of which must succeed, and return their output."""
        path = (str(self.directory / "programs"), str(Path(executable()).parent), os.environ["PATH"])
        environment = {
            **os.environ,
            "HOME": str(self.directory),
            "KUBECONFIG": str(self.directory / "data/kubeconfig"),
            "PATH": ":".join(path),
            "PYTHONPATH": str(SERVICES),
        }
        return execute(commands, self.directory, environment, timeout=120, shell=("bash", "-euo", "pipefail", "-c"))

    @contextmanager
    def up(self, *flags: str) -> Iterator[None]:
        with running(self.directory / "data", *flags):
            yield


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_the_first_commands_of_the_readme(reader: Reader) -> None:
    with reader.up():
        output = reader.run(block(ROOT / "README.md", "export KUBECONFIG=$PWD/data/kubeconfig\n"))
    assert "kube-system" in output and "deployment.apps/web created" in output and "KIND:       Deployment" in output


def test_a_definition_from_pydantic_models(reader: Reader) -> None:
    page = GUIDES / "crds.md"
    (reader.directory / "shop.py").write_text(block(page, "# shop.py"))
    with reader.up():
        reader.run(block(page, "tetrapod create crd shop:ORDER"))
        assert "orders.shop.example.com" in reader.run("kubectl get crds -o name")
    assert "kind: CustomResourceDefinition" in reader.run(block(page, "tetrapod create crd v1=shop:Order"))


def test_an_audit_policy_and_encryption(reader: Reader) -> None:
    """Start one server with the files of both pages."""
    audit, encryption = GUIDES / "audit.md", GUIDES / "encryption.md"
    (reader.directory / "policy.yaml").write_text(block(audit, "apiVersion: audit.k8s.io/v1\n"))
    *configuration, start = block(encryption, "cat > encryption.yaml").splitlines()
    assert start.startswith("tetrapod up --")
    reader.run("\n".join(configuration))
    flags = [f"--audit-policy-file={reader.directory}/policy.yaml", f"--audit-log-path={reader.directory}/audit.log"]
    with reader.up():
        reader.run("kubectl create secret generic s --from-literal=a=b")
    with reader.up(*start.replace("=", f"={reader.directory}/").split()[2:], *flags):
        reader.run(block(encryption, "kubectl get secrets --all-namespaces"))
        assert reader.run("kubectl get secret s -o jsonpath={.data.a}") == "Yg=="
    events = [json.loads(line) for line in (reader.directory / "audit.log").read_text().splitlines()]
    levels = {
        event["verb"]: event["level"] for event in events if event.get("objectRef", {}).get("resource") == "secrets"
    }
    assert levels == {"list": "Metadata", "get": "Metadata", "update": "Metadata"}
    files = (reader.directory / "data").glob("tetrapod.db*")
    assert any(b"k8s:enc:secretbox:v1:key1:" in file.read_bytes() for file in files)


def test_backup_restore_and_migration(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = GUIDES / "backup.md"
    with reader.up():
        reader.run("kubectl create configmap kept --from-literal=a=b")
        lines = block(page, "tetrapod backup").splitlines()
        reader.run("\n".join(line for line in lines if "etcd" not in line))
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        reader.run(block(page, "tetrapod migrate --from data --to").replace("http://127.0.0.1:2379", etcd.url))
    for directory in ("restored", "data2"):
        with running(reader.directory / directory):
            kubeconfig = f"--kubeconfig={reader.directory}/{directory}/kubeconfig"
            assert reader.run(f"kubectl {kubeconfig} get configmap kept -o jsonpath={{.data.a}}") == "b"
