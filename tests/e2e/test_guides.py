"""The README and the how-to guides executed: their commands, configuration files and programs as they are written.

Ports are free ones. Commands for machines that the test does not have are left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.etcd import running_etcd
from support.pages import ROOT, block, blocks
from support.reader import Reader, with_free_ports
from support.server import running

GUIDES = ROOT / "docs/how-to"


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


def commands_of_four_services(page: Path) -> str:
    """Return the commands of a page, without those that start etcd and that stop all at the end."""
    texts = [each.text for each in blocks(page) if not each.language]
    return "".join(text for text in texts if not text.startswith(("etcd ", "kill ")))


def test_four_services_by_hand_and_a_further_replica(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    commands = with_free_ports(commands_of_four_services(GUIDES / "services.md"))
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        script = commands.replace("http://127.0.0.1:2379", etcd.url)
        with reader.executing(script):
            output = reader.log.read_text()
    assert all(f"[+]service/{service} ok" in output for service in ("auth", "core", "extensions"))
    assert 'tetrapod_service_replicas{ready="true",service="core"} 2' in output


def test_four_services_over_unix_sockets(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    services, sockets = GUIDES / "services.md", GUIDES / "unix-sockets.md"
    commands = with_free_ports(
        block(services, "tetrapod certs") + commands_of_four_services(sockets) + block(services, "export KUBECONFIG")
    )
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        script = commands.replace("http://127.0.0.1:2379", etcd.url)
        with reader.executing(script):
            names = sorted(path.name for path in (reader.directory / "sockets").iterdir())
            output = reader.log.read_text()
    assert names == ["aggregator.sock", "auth.sock", "core.sock", "extensions.sock"]
    assert all(f"[+]service/{service} ok" in output for service in ("auth", "core", "extensions"))
