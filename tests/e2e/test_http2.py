"""Real clients over HTTP/2: kubectl, Helm, curl, httpx and Node; test_go_client.py has client-go."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from e2e.conftest import Target
from support.helm import run as helm
from support.identity import identity_of
from support.kubectl import Kubectl

WATCHES = 60
WRITES = 5


@pytest.fixture
def identity(server: Target, tmp_path: Path) -> tuple[Path, Path]:
    """Return the files of the administrator's certificate and key."""
    admin = identity_of(server.kubeconfig)
    (tmp_path / "client.crt").write_bytes(admin.certificate)
    (tmp_path / "client.key").write_bytes(admin.key)
    return tmp_path / "client.crt", tmp_path / "client.key"


@pytest.fixture
def context(server: Target, identity: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.ca))
    context.load_cert_chain(*identity)
    return context


def curl(server: Target, identity: tuple[Path, Path]) -> list[str | Path]:
    certificate, key = identity
    return ["curl", "-s", "--cacert", server.ca, "--cert", certificate, "--key", key]


def test_kubectl_speaks_http_2(kubectl: Kubectl) -> None:
    done = kubectl.run("create", "configmap", "a", "--from-literal=x=y", env={"GODEBUG": "http2debug=1"})
    assert done.returncode == 0
    assert re.search(r'http2: Transport encoding header ":method" = "POST"', done.stderr)
    assert "http2: Transport received HEADERS" in done.stderr or "http2: Framer" in done.stderr
    assert kubectl("get", "configmap", "a", "-o", "jsonpath={.data.x}") == "y"


@pytest.mark.parametrize(("option", "version"), [("--http2", "2"), ("--http1.1", "1.1")])
def test_curl_gets_the_version_that_it_asks_for(
    server: Target, identity: tuple[Path, Path], option: str, version: str
) -> None:
    command = [*curl(server, identity), option, "-w", "\n%{http_version}", f"{server.url}/api/v1/namespaces/default"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    body, _, spoken = done.stdout.rpartition("\n")
    assert (json.loads(body)["metadata"]["name"], spoken) == ("default", version)


async def test_many_watches_and_writes_share_one_connection(
    server: Target, context: ssl.SSLContext, kubectl: Kubectl
) -> None:
    pytest.importorskip("h2")
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    limits = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(base_url=server.url, verify=context, http2=True, limits=limits, timeout=30) as client:
        version = (await client.get(path)).json()["metadata"]["resourceVersion"]

        async def watch() -> list[str]:
            parameters = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "20"}
            names: list[str] = []
            async with client.stream("GET", path, params=parameters) as response:
                assert response.http_version == "HTTP/2"
                async for line in response.aiter_lines():
                    names.append(json.loads(line)["object"]["metadata"]["name"])
                    if len(names) == WRITES:
                        return names
            return names

        watches = [asyncio.create_task(watch()) for _ in range(WATCHES)]
        for number in range(WRITES):
            created = await client.post(path, json={"metadata": {"name": f"c{number}"}})
            assert (created.status_code, created.http_version) == (201, "HTTP/2")
        assert await asyncio.gather(*watches) == [[f"c{number}" for number in range(WRITES)]] * WATCHES


def test_a_list_of_large_objects_arrives_whole(server: Target, context: ssl.SSLContext, kubectl: Kubectl) -> None:
    pytest.importorskip("h2")
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    with httpx.Client(base_url=server.url, verify=context, http2=True, timeout=60) as client:
        for number in range(12):
            made = client.post(path, json={"metadata": {"name": f"large-{number}"}, "data": {"x": "y" * 1_000_000}})
            assert made.status_code == 201
        listed = client.get(path, params={"labelSelector": ""}).json()["items"]
        assert [len(item["data"]["x"]) for item in listed if item["metadata"]["name"] != "kube-root-ca.crt"] == [
            1_000_000
        ] * 12


def test_an_object_beyond_the_limit_is_rejected_before_it_has_arrived(
    server: Target, identity: tuple[Path, Path], context: ssl.SSLContext, tmp_path: Path
) -> None:
    large = json.dumps({"metadata": {"name": "a"}, "data": {"x": "y" * 4_000_000}})
    body = tmp_path / "large.json"
    body.write_text(large)
    url = f"{server.url}/api/v1/namespaces/default/configmaps"
    options = ("--http2", "--data-binary", f"@{body}", "-o", tmp_path / "out", "-w", "%{http_version} %{http_code}")
    command = [*curl(server, identity), *options, "-H", "content-type: application/json", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "2 413"
    pytest.importorskip("h2")
    with httpx.Client(verify=context, http2=True, timeout=60) as client:
        assert client.post(url, content=large, headers={"content-type": "application/json"}).status_code == 413


def test_node_watches_and_writes_on_one_session(server: Target, identity: tuple[Path, Path], kubectl: Kubectl) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node is not on this machine (tools/prepare.sh)")
    program = Path(__file__).parent / "node_client.mjs"
    command: list[str | Path] = ["node", program, server.url, server.ca, *identity, kubectl.namespace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "201 200 300000 b 200",
        "ADDED from-node",
        "MODIFIED from-node",
        "DELETED from-node",
        "404 NotFound h2",
    ]


def test_helm_speaks_http_2(kubectl: Kubectl) -> None:
    traced = replace(kubectl, environment={**kubectl.environment, "GODEBUG": "http2debug=1"})
    done = helm("install", "shop", str(Path(__file__).parent / "charts/shop"), kubectl=traced)
    assert done.returncode == 0, done.stderr
    assert re.search(r'http2: Transport encoding header ":method" = "POST"', done.stderr)
    assert "STATUS: deployed" in done.stdout
    assert helm("uninstall", "shop", kubectl=kubectl).returncode == 0
