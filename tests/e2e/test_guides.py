"""The README and the how-to guides executed: their commands, configuration files and programs as they are written.

Ports are free ones. Commands for machines that the test does not have are left out.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.console import running_console
from support.etcd import running_etcd
from support.issuer import issuer
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
    for name in ("conftest.py", "test_shop.py"):
        (reader.directory / name).write_text(block(page, f"# {name}"))
    plugin = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=$PYTHONPATH:. python -m pytest -p tetrapod.testing.plugin"
    assert "1 passed" in reader.run(f"{plugin} -p no:cacheprovider test_shop.py")


def test_id_tokens_and_an_authorization_webhook(reader: Reader) -> None:
    """Start a server with both files, which name an issuer and a webhook of the test."""
    page = GUIDES / "authentication.md"
    authentication = block(page, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration")
    authorization = block(page, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration")
    connection = yaml.safe_load(block(page, "apiVersion: v1\nkind: Config"))
    reviews: list[dict[str, Any]] = []

    def review(body: dict[str, Any]) -> dict[str, Any]:
        reviews.append(body["spec"])
        return {**body, "status": {"allowed": True}}

    with issuer() as provider:
        provider.server.on("/review", review)
        ca = reader.directory / "webhook-ca.crt"
        ca.write_text(provider.ca)
        connection["clusters"][0]["cluster"] = {"server": f"{provider.url}/review", "certificate-authority": str(ca)}
        connection["users"][0]["user"] = {}
        (reader.directory / "policy.kubeconfig").write_text(yaml.safe_dump(connection))
        indented = textwrap.indent(provider.ca, " " * 6)
        (reader.directory / "authentication.yaml").write_text(
            authentication.replace("https://login.example.com", provider.url).replace(
                "      -----BEGIN CERTIFICATE-----\n      ...\n", indented
            )
        )
        (reader.directory / "authorization.yaml").write_text(
            authorization.replace("/etc/tetrapod/policy.kubeconfig", str(reader.directory / "policy.kubeconfig"))
        )
        token = provider.token(
            email="jane@example.com", email_verified=True, hd="example.com", tenant="blue", groups=["dev"]
        )
        configurations = [
            f"--{name}-config={reader.directory}/{name}.yaml" for name in ("authentication", "authorization")
        ]
        with reader.up(*configurations):
            # The credentials of the kubeconfig would take precedence over the token.
            anonymous = f"""
                kubectl config view --raw | sed '/client-certificate-data\\|client-key-data/d' > anonymous
                export KUBECONFIG=$PWD/anonymous TOKEN={token}
            """
            whoami = block(page, "kubectl --token=$TOKEN auth whoami")
            shown = reader.run(anonymous + whoami)
            reader.run(f"{anonymous}\nkubectl --token=$TOKEN get configmaps,nodes")
            forbidden = reader.run(f"{anonymous}\nkubectl --token=$TOKEN get secrets -n kube-system 2>&1 || true")
    assert [re.split(" {2,}", line) for line in shown.splitlines()[1:]] == [
        ["Username", "jane@example.com"],
        ["UID", "jane"],
        ["Groups", "[oidc:dev system:authenticated]"],
        ["Extra: example.com/tenant", "[blue]"],
    ]
    assert {(each["user"], each["resourceAttributes"]["resource"]) for each in reviews} == {
        ("jane@example.com", "selfsubjectreviews"),
        ("jane@example.com", "configmaps"),
        ("jane@example.com", "nodes"),
    }
    assert 'User "jane@example.com" cannot list resource "secrets"' in forbidden


def test_a_policy_file_of_abac(reader: Reader) -> None:
    page = GUIDES / "authentication.md"
    (reader.directory / "policies.jsonl").write_text(block(page, '{"apiVersion": "abac'))
    with reader.up("--authorization-mode=ABAC,RBAC", f"--authorization-policy-file={reader.directory}/policies.jsonl"):
        reader.run("kubectl get configmaps -n projects --as jane")
        assert "cannot list" in reader.run("kubectl get configmaps -n default --as jane 2>&1 || true")
        assert "cannot delete" in reader.run("kubectl delete configmap a -n projects --as jane 2>&1 || true")


def test_an_audit_policy_and_encryption(reader: Reader) -> None:
    """Start one server with the files of both pages."""
    audit, encryption = GUIDES / "audit.md", GUIDES / "encryption.md"
    (reader.directory / "policy.yaml").write_text(block(audit, "apiVersion: audit.k8s.io/v1\n"))
    with reader.executing(block(audit, "tetrapod up").replace(" &", " --secure-port=0 &", 1)):
        assert '"level":"Metadata"' in reader.log.read_text()
    (reader.directory / "audit.log").unlink()
    enable, rewrite = block(encryption, "(umask 077; cat > encryption.yaml)"), block(encryption, "kubectl get secrets")
    flags = "--secure-port=0 --audit-policy-file=policy.yaml --audit-log-path=audit.log"
    with reader.up():
        reader.run("kubectl create secret generic s --from-literal=a=b")
    with reader.executing(enable.replace("tetrapod up", f"tetrapod up {flags}", 1) + rewrite):
        assert reader.run("kubectl get secret s -o jsonpath={.data.a}") == "Yg=="
    assert (reader.directory / "encryption.yaml").stat().st_mode & 0o777 == 0o600
    events = [json.loads(line) for line in (reader.directory / "audit.log").read_text().splitlines()]
    levels = {
        event["verb"]: event["level"] for event in events if event.get("objectRef", {}).get("resource") == "secrets"
    }
    assert levels == {"list": "Metadata", "get": "Metadata", "update": "Metadata"}
    files = (reader.directory / "data").glob("tetrapod.db*")
    assert any(b"k8s:enc:secretbox:v1:key1:" in file.read_bytes() for file in files)


def test_deletion_of_a_secret_whose_key_is_lost(reader: Reader) -> None:
    page = GUIDES / "encryption.md"
    enable = block(page, "(umask 077; cat > encryption.yaml)").replace("tetrapod up", "tetrapod up --secure-port=0", 1)
    with reader.executing(enable):
        reader.run("kubectl create secret generic lost --from-literal=a=b")
    with reader.executing(enable):  # makes another key
        assert "not transformable" in reader.run("kubectl get secret lost 2>&1 || true")
        reader.run(block(page, "kubectl delete --raw"))
        assert reader.run("kubectl get secrets --all-namespaces -o name") == ""


def test_backup_restore_and_migration(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = GUIDES / "backup.md"
    with reader.up():
        reader.run("kubectl create configmap kept --from-literal=a=b")
        reader.run(block(page, "tetrapod backup --data-dir"))
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd, running_etcd(tmp_path_factory.mktemp("other")) as other:
        reader.run(block(page, "tetrapod migrate --from data --to").replace("http://127.0.0.1:2379", etcd.url))
        plain = re.sub(r" --etcd-(ca|cert|key)file \S+", "", block(page, "tetrapod backup --etcd-servers"))
        (reader.directory / "monday.backup").unlink()
        reader.run(plain.replace("https://etcd-0:2379", etcd.url).replace("https://etcd-1:2379", other.url))
        assert other.value("/registry/configmaps/default/kept")
    for directory in ("restored", "data2"):
        with running(reader.directory / directory):
            kubeconfig = f"--kubeconfig={reader.directory}/{directory}/kubeconfig"
            assert reader.run(f"kubectl {kubeconfig} get configmap kept -o jsonpath={{.data.a}}") == "b"


def commands_of_four_services(page: Path) -> str:
    """Return the commands of a page, without those that start etcd and that stop all at the end."""
    texts = [each.text for each in blocks(page) if not each.language]
    return "".join(text for text in texts if not text.startswith(("etcd ", "kill ")))


def console_command(kubeconfig: str) -> str:
    """Return the command that starts the console with a kubeconfig, without the prompts and the output."""
    text = block(GUIDES / "console.md", f"$ tetrapod console --kubeconfig {kubeconfig}")
    return text.removeprefix("$ ").replace("\\\n", "")


def processes_that_the_console_reads(reader: Reader, command: str) -> dict[str, Any]:
    """Run the console, and return the error of each process, or None, by the name of the process."""
    program, page, option, kubeconfig, *flags = shlex.split(command)
    assert (program, page, option) == ("tetrapod", "console", "--kubeconfig")
    with running_console(reader.directory / kubeconfig, *flags) as console:
        traffic = next(state["data"] for panel, state in console.states() if panel == "traffic" and state["data"])
    return {process["name"]: process["error"] for process in traffic["processes"]}


def test_four_services_by_hand_a_user_a_further_replica_and_the_console(
    reader: Reader, tmp_path_factory: pytest.TempPathFactory
) -> None:
    console = console_command("certs/admin/kubeconfig")
    commands = with_free_ports(commands_of_four_services(GUIDES / "services.md") + f"# {console}")
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        script = commands.replace("http://127.0.0.1:2379", etcd.url)
        with reader.executing(script):
            output = reader.log.read_text()
            processes = processes_that_the_console_reads(reader, script.rpartition("# ")[2])
    assert all(f"[+]service/{service} ok" in output for service in ("auth", "core", "extensions"))
    assert 'tetrapod_service_replicas{ready="true",service="core"} 2' in output
    assert processes == dict.fromkeys(("apiserver", "core", "extensions", "auth"))
    assert re.search(r"^Username +jane$", output, re.M)
    assert re.search(r"^Groups +\[developers system:authenticated]$", output, re.M)
    assert re.search(r"^kubernetes +ClusterIP ", output, re.M)


def test_two_workers(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = block(GUIDES / "workers.md", "etcd --data-dir").partition("\n")[2]
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        script = page.replace("http://127.0.0.1:2379", etcd.url).replace("tetrapod up", "tetrapod up --secure-port=0")
        with reader.executing(script):
            assert "tetrapod_workers 2" in reader.log.read_text()


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
