"""deploy/examples/fastapi: API servers in FastAPI behind the aggregator, used by kubectl."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.failing_starts import run_command
from support.kubectl import Kubectl
from support.pages import ROOT, commands
from support.reader import Reader
from support.server import Server, end, free_port, running
from support.waiting import until
from tetrapod.generic.certificates import Pki

EXAMPLE = ROOT / "deploy/examples/fastapi"
PAGE = ROOT / "docs/how-to/fastapi.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("cluster")) as server:
        yield server


@pytest.fixture(scope="module")
def kubectl(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(tmp_path_factory.mktemp("home"), server.kubeconfig)


@contextmanager
def section(server: Server, directory: Path, heading: str, ports: Mapping[int, int]) -> Iterator[None]:
    """Execute the commands of a section of the page, with free ports in place of its own."""
    shutil.copytree(EXAMPLE, directory, dirs_exist_ok=True)
    text = "".join(commands(PAGE, heading))
    for port, free in ports.items():
        text = text.replace(str(port), str(free))
    reader = Reader(directory, server.kubeconfig)
    with reader.executing(text):
        assert "created" in reader.log.read_text()
        yield


def check(server: Server, port: int, group_version: str, ca: Path) -> dict[str, str]:
    """Return the outcome of each check of `tetrapod check-apiserver`."""
    url, data = f"https://localhost:{port}", f"--data-dir={server.data_dir}"
    service = f"--service=default/{group_version.partition('.')[0]}"
    trust = (f"--certificate-authority={ca}", service)
    done = run_command("check-apiserver", url, group_version, data, *trust, "--output=json", timeout=90)
    return {each["check"]: f"{each['outcome']} {each['detail']}".strip() for each in json.loads(done.stdout)}


# --- the library, mounted


@pytest.fixture(scope="module")
def mounted(server: Server, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    directory, port = tmp_path_factory.mktemp("mounted"), free_port()
    with section(server, directory, "## Mount the library", {7443: port}):
        assert (directory / "log").read_text().endswith('{"open":true}')
        kubectl("delete", "order", "first")
        yield port, directory / "shop-data/pki/ca.crt"


ORDER = {"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "a"}, "spec": {"customer": "Ann"}}


def test_kubectl_uses_an_api_that_is_mounted_in_fastapi(mounted: tuple[int, Path], kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(ORDER))
    assert re.search(r"^a +Ann +\S+$", kubectl("get", "orders", "--no-headers"), re.MULTILINE)
    watched = kubectl("get", "orders", "--watch", "-o", "name", "--request-timeout=2s")
    assert watched.split() == ["order.shop.example.com/a"]
    assert "should be greater than or equal to 1" in kubectl.fails(
        "patch", "order", "a", "--type=merge", "--patch", '{"spec": {"amount": 0}}'
    )
    assert 'User "jane" cannot list resource "orders"' in kubectl.fails("get", "orders", "--as=jane")
    kubectl("delete", "order", "a")


def test_the_application_serves_its_own_paths_beside_the_api(mounted: tuple[int, Path]) -> None:
    port, ca = mounted
    assert httpx.get(f"https://localhost:{port}/shop", verify=ssl.create_default_context(cafile=ca)).json() == {
        "open": True
    }


def test_identity_headers_without_the_front_proxys_certificate_are_ignored(mounted: tuple[int, Path]) -> None:
    port, ca = mounted
    headers = {"X-Remote-User": "eve", "X-Remote-Group": "system:masters"}
    answer = httpx.get(
        f"https://localhost:{port}/apis/shop.example.com/v1/orders",
        verify=ssl.create_default_context(cafile=ca),
        headers=headers,
    )
    assert (answer.status_code, "system:anonymous" in answer.json()["message"]) == (403, True)


def test_the_mounted_api_meets_the_requirements(mounted: tuple[int, Path], server: Server) -> None:
    outcomes = check(server, mounted[0], "shop.example.com/v1", mounted[1])
    assert {name: outcome for name, outcome in outcomes.items() if outcome != "pass"} == {}


# --- plain FastAPI


@pytest.fixture(scope="module")
def plain(server: Server, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    directory, port = tmp_path_factory.mktemp("plain"), free_port()
    with section(server, directory, "## Write a server in plain FastAPI", {7444: port}):
        kubectl("delete", "todo", "first")
        yield port, directory / "tls.crt"


TODO = {"apiVersion": "todo.example.com/v1", "kind": "Todo", "metadata": {"name": "a"}, "spec": {"task": "Write"}}


def test_kubectl_uses_an_api_in_plain_fastapi(plain: tuple[int, Path], kubectl: Kubectl) -> None:
    assert "todos" in kubectl("api-resources", "--api-group=todo.example.com")
    assert kubectl("create", "-f", "-", stdin=json.dumps(TODO)) == "todo.todo.example.com/a created\n"
    assert re.search(r"^a +Write +false +\S+$", kubectl("get", "todos", "--no-headers"), re.MULTILINE)
    assert "What is to be done" in kubectl("explain", "todo.spec.task")
    assert 'User "jane" cannot list resource "todos"' in kubectl.fails("get", "todos", "--as=jane")
    assert "NotFound" in kubectl.fails("get", "todo", "b")
    invalid = {**TODO, "metadata": {"name": "b"}, "spec": {"task": ""}}
    assert "at least 1 character" in kubectl.fails("create", "-f", "-", stdin=json.dumps(invalid))
    kubectl("delete", "todo", "a")
    assert kubectl("get", "todos", "-o", "name") == ""


def test_a_watch_of_plain_fastapi_receives_events_as_they_happen(
    plain: tuple[int, Path], kubectl: Kubectl, tmp_path: Path
) -> None:
    log = tmp_path / "watch"
    with log.open("wb") as out:
        command = [*kubectl.command(), "get", "todos", "--watch", "--output-watch-events", "--no-headers"]
        process = subprocess.Popen(command, env=kubectl.env(), stdout=out)
    try:
        until(lambda: process.poll() is None and "todos" in kubectl("api-resources", "--api-group=todo.example.com"))
        kubectl("create", "-f", "-", stdin=json.dumps({**TODO, "metadata": {"name": "w"}}))
        kubectl("delete", "todo", "w")
        lines = until(lambda: log.read_text().splitlines(), lambda lines: len(lines) >= 2)
        assert [line.split()[:2] for line in lines] == [["ADDED", "w"], ["DELETED", "w"]]
    finally:
        end(process)


def test_plain_fastapi_meets_the_requirements(plain: tuple[int, Path], server: Server) -> None:
    assert {
        name: outcome
        for name, outcome in check(server, plain[0], "todo.example.com/v1", plain[1]).items()
        if outcome != "pass"
    } == {"aggregated discovery": "skip not supported: the aggregator falls back to unaggregated discovery"}


def test_plain_fastapi_accepts_no_connection_without_the_front_proxys_certificate(
    plain: tuple[int, Path], server: Server
) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"https://localhost:{plain[0]}/readyz", verify=False)
    context = ssl._create_unverified_context()
    context.load_cert_chain(*Pki(server.data_dir / "pki").front_proxy_client)
    with httpx.Client(verify=context) as client:
        assert client.get(f"https://localhost:{plain[0]}/readyz").json() == "ok"
