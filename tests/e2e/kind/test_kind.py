"""The chart on a kind cluster: installed, tested, upgraded, and with an external API server registered.

`make e2e-kind` runs it. It is skipped, with the reason, if kind cannot be built or its node image cannot be downloaded.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.test_kubectl import rows
from support.compose import ETCD, IMAGE, LIBRARY, REDIS, ROOT, build_images
from support.helm import CHART, helm, settings
from support.kubectl import Kubectl, wait_established
from support.server import free_port, wait_ready
from support.waiting import until

pytestmark = [pytest.mark.kind, pytest.mark.timeout(1800)]

NAME = "tetrapod-e2e"
REGISTER = ROOT / "deploy/examples/library/register.sh"


def image(name: str) -> dict[str, str]:
    repository, tag = name.split(":")
    return {"registry": "", "repository": repository, "tag": tag}


VALUES = settings(image=image(IMAGE), etcd__image=image(ETCD), redis__image=image(REDIS), etcd__replicaCount=3)


@dataclass
class Hosted:
    """Tetrapod in a kind cluster: `host` is that cluster, `kubectl` connects to Tetrapod through a forwarded port."""

    host: Kubectl
    kubectl: Kubectl
    directory: Path


def kind_or_skip() -> str:
    found = subprocess.run([ROOT / "tools/kind.sh"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip(
            f"not applicable: kind is not on this machine and cannot be built: {found.stderr.strip().splitlines()[-1]}"
        )
    return found.stdout.strip()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    kind = kind_or_skip()
    directory = tmp_path_factory.mktemp("kind")
    kubeconfig = directory / "kind.kubeconfig"
    made = subprocess.run(
        [kind, "create", "cluster", "--name", NAME, "--kubeconfig", str(kubeconfig), "--wait", "180s"],
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
        build_images()
        subprocess.run(
            [kind, "load", "docker-image", "--name", NAME, IMAGE, LIBRARY, ETCD, REDIS], check=True, timeout=600
        )
        admin = Kubectl(directory, kubeconfig)
        admin("create", "namespace", "hosted")
        yield Kubectl(directory, kubeconfig, "hosted")
    finally:
        subprocess.run([kind, "delete", "cluster", "--name", NAME], capture_output=True, check=False)


@pytest.fixture(scope="module")
def hosted(host: Kubectl) -> Iterator[Hosted]:
    helm("install", "rel", str(CHART), *VALUES, "--wait", "--timeout", "10m", kubectl=host, timeout=700)
    data = host.json("get", "secret", "rel-tetrapod-admin")["data"]["kubeconfig"]
    config = json.loads(base64.b64decode(data))
    port = free_port()
    config["clusters"][0]["cluster"]["server"] = f"https://localhost:{port}"
    kubeconfig = host.home / "tetrapod.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    log = host.home / "port-forward.log"
    # Forward a port, and start the forwarding again each time its pod ends.
    loop = 'while :; do "$@" || sleep 1; done'
    forward = ["sh", "-c", loop, "sh", *host.command(), "port-forward", "service/rel-tetrapod", f"{port}:443"]
    with log.open("ab") as out:
        process = subprocess.Popen(forward, env=host.env(), stdout=out, stderr=out, start_new_session=True)
    try:
        wait_ready(f"https://localhost:{port}", process, log)
        yield Hosted(host, Kubectl(host.home, kubeconfig), host.home)
    finally:
        subprocess.run(["kill", "--", f"-{process.pid}"], check=False)
        process.wait()


def test_helm_test_passes(hosted: Hosted) -> None:
    assert "Succeeded" in helm("test", "rel", kubectl=hosted.host, timeout=300)


def test_kubectl_commands_work(hosted: Hosted, manifests: Path) -> None:
    kubectl = Kubectl(hosted.kubectl.home, hosted.kubectl.kubeconfig, "tour")
    hosted.kubectl("create", "namespace", "tour")
    kubectl.exists("serviceaccount/default")
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert rows(kubectl("get", "deployments"))[1][:2] == ["web", "0/2"]
    kubectl("apply", "-f", str(manifests / "crd.yaml"))
    wait_established(kubectl, "widgets.e2e.example.com")
    widget = {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    until(
        lambda: kubectl.run("apply", "-f", "-", stdin=json.dumps(widget)).returncode == 0,
        description="the custom resource",
    )
    kubectl("delete", "namespace", "tour", "--timeout=60s")


def test_only_the_aggregator_is_reachable_from_other_pods(hosted: Hosted) -> None:
    """The test needs a cluster network that enforces NetworkPolicies, as kind's own does."""
    script = "import urllib.request as u; u.urlopen('{}', timeout=5)"
    for service, said in (("rel-tetrapod:443", "CERTIFICATE_VERIFY_FAILED"), ("rel-tetrapod-auth:6443", "timed out")):
        command = ["python", "-c", script.format(f"https://{service.replace(':', '.hosted.svc:')}/readyz")]
        done = hosted.host.run(
            *(
                "run",
                "outsider",
                "--namespace=default",
                f"--image={IMAGE}",
                "--image-pull-policy=Never",
                "--restart=Never",
                "--rm",
                "-i",
            ),
            *("--command", "--", *command),
            timeout=120,
        )
        assert said in done.stdout + done.stderr


def test_an_external_api_server_is_aggregated(hosted: Hosted) -> None:
    credentials = hosted.directory / "credentials"
    register(hosted, "credentials", str(credentials))
    hosted.host("create", "secret", "generic", "library", f"--from-file={credentials}")
    hosted.host("apply", "-f", str(Path(__file__).parent / "library.yaml"))
    hosted.host("rollout", "status", "deployment/library", "--timeout=120s", timeout=150)
    ca = hosted.directory / "library-ca.crt"
    ca.write_text(hosted.host("exec", "deployment/library", "--", "cat", "/data/pki/ca.crt"))
    register(hosted, "apiservice", str(ca))
    until(
        lambda: "books" in hosted.kubectl("api-resources", "--api-group=library.example.com", "-o", "name"),
        timeout=60,
        description="discovery",
    )
    hosted.kubectl("apply", "-f", str(REGISTER.parent / "manifests/40-books.yaml"))
    assert "moby-dick" in hosted.kubectl("get", "books", "--namespace=library", "-o", "name")


def test_an_upgrade_and_a_rollback_fail_no_client_that_retries(hosted: Hosted) -> None:
    hosted.kubectl("create", "configmap", "kept", "--from-literal=a=b", "--namespace=default")
    began = time.monotonic()
    upgraded = settings(defaults__podAnnotations={"example.com/upgrade": "1"})
    helm(
        "upgrade", "rel", str(CHART), *VALUES, *upgraded, "--wait", "--timeout", "10m", kubectl=hosted.host, timeout=700
    )
    helm("rollback", "rel", "1", "--wait", "--timeout", "10m", kubectl=hosted.host, timeout=700)
    until(
        lambda: hosted.kubectl.run("get", "configmap", "kept", "--namespace=default").returncode == 0,
        timeout=60,
        description="the front door",
    )
    print(f"upgraded and rolled back in {time.monotonic() - began:.0f} s")


def register(hosted: Hosted, *args: str) -> None:
    done = subprocess.run(
        [REGISTER, *args], env=hosted.kubectl.env(), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
