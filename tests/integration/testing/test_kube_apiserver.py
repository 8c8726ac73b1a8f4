"""`tetrapod-etcd` and `tetrapod-kube-apiserver` as replacements for etcd and kube-apiserver."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.etcd import running_etcd
from support.https_client import HttpsClient
from support.server import environment, free_port, wait_ready
from tetrapod.generic.certificates.authority import Authority

MAPS = "/api/v1/namespaces/default/configmaps"


def argv(module: str, *flags: str) -> list[str]:
    return [sys.executable, "-c", f"from tetrapod.cli.{module} import main; main()", *flags]


def run(module: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv(module, *flags), capture_output=True, text=True, env=environment(), check=False, timeout=60
    )


@contextmanager
def running(module: str, log: Path, url: str, *flags: str, more: str = "") -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv(module, *flags), stdout=out, stderr=out, env={**environment(), "TETRAPOD_FLAGS": more}
        )
    try:
        wait_ready(url, process, log)
        yield process
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[str]:
    url = f"http://127.0.0.1:{free_port()}"
    flags = (
        f"--listen-client-urls={url}",
        "--data-dir",
        str(tmp_path / "etcd"),
        "--unsafe-no-fsync=true",
        "--listen-peer-urls=http://x:1",
    )
    with running("etcd_stand_in", tmp_path / "etcd.log", url, *flags):
        yield url


@contextmanager
def apiserver(directory: Path, etcd: str, more: str = "") -> Iterator[HttpsClient]:
    """Start with the flags of envtest."""
    url = f"https://127.0.0.1:{(port := free_port())}"
    flags = {
        "etcd-servers": etcd,
        "cert-dir": directory,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "authorization-mode": "RBAC",
        "disable-admission-plugins": "ServiceAccount",
        "service-cluster-ip-range": "10.0.0.0/24",
        "allow-privileged": "true",
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    with running("kube_apiserver", directory / "log", url, *given, more=more):
        yield HttpsClient(directory / "tetrapod" / "kubeconfig")


def test_both_programs_print_their_flags_as_envtest_expects() -> None:
    for module, flag in (("etcd_stand_in", "--unsafe-no-fsync"), ("kube_apiserver", "--etcd-servers")):
        done = run(module, "--help")
        assert done.returncode == 0
        assert any(line.strip().startswith(flag) for line in done.stdout.splitlines())
        assert "--insecure-port" not in done.stdout  # the port that it would use


def test_tetrapod_etcd_answers_health_checks_as_etcd(etcd: str) -> None:
    with urllib.request.urlopen(f"{etcd}/health", timeout=5) as answer:
        assert answer.read() == b'{"health":"true","reason":""}'


def test_objects_live_as_long_as_the_etcd(tmp_path: Path, etcd: str) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with apiserver(tmp_path / "first", etcd) as client:
        assert client.call("POST", MAPS, {"metadata": {"name": "kept"}}).status == 201
    with apiserver(tmp_path / "second", etcd) as client:
        found = client.until(lambda reply: reply.status != 401, "GET", f"{MAPS}/kept")
        assert found.status == 200


def test_the_certificate_is_that_of_the_directory_and_flags_come_from_the_environment(
    tmp_path: Path, etcd: str
) -> None:
    authority = Authority.create("somebody")
    certificate, key = authority.issue_server("given", ["localhost", "127.0.0.1"])
    (tmp_path / "apiserver.crt").write_bytes(certificate)
    (tmp_path / "apiserver.key").write_bytes(key)
    with apiserver(tmp_path, etcd, more="--strict-transport-security-directives=max-age=77 -v=2") as client:
        context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        with urllib.request.urlopen(f"{client.url}/version", context=context, timeout=10) as answer:
            assert answer.headers["strict-transport-security"] == "max-age=77"


def test_front_proxies_are_trusted_only_with_the_headers_of_the_flags(tmp_path: Path, etcd: str) -> None:
    authority = Authority.create("proxies")
    (tmp_path / "proxies.crt").write_bytes(authority.certificate_pem)
    certificate, key = authority.issue_client("front")
    (tmp_path / "front.pem").write_bytes(certificate + key)
    flags = f"--requestheader-client-ca-file={tmp_path}/proxies.crt --requestheader-username-headers=X-Remote-User"
    with apiserver(tmp_path, etcd, more=flags) as client:
        context = ssl._create_unverified_context()
        context.load_cert_chain(tmp_path / "front.pem")
        headers = {"X-Remote-User": "carol", "X-Remote-Uid": "1", "X-Remote-Group": "readers"}
        review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
        url = f"{client.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
        request = urllib.request.Request(url, review, {**headers, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, context=context, timeout=10) as response:
            user = json.load(response)["status"]["userInfo"]
        assert user == {"username": "carol", "groups": ["system:authenticated"]}


def test_privileged_containers_are_let_in_as_the_flag_says(tmp_path: Path, etcd: str) -> None:
    container = {"name": "a", "image": "x", "securityContext": {"privileged": True}}
    path, pod = (
        "/api/v1/namespaces/default/pods?dryRun=All",
        {"metadata": {"name": "p"}, "spec": {"containers": [container]}},
    )
    with apiserver(tmp_path, etcd, more="--allow-privileged=false") as client:
        rejected = client.call("POST", path, pod)
        assert rejected.status == 422
        text = "spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"
        assert rejected.body["message"] == f'Pod "p" is invalid: {text}'


def test_a_real_etcd_is_used_as_such(tmp_path: Path) -> None:
    with running_etcd(tmp_path / "etcd") as etcd:
        with apiserver(tmp_path, etcd.url) as client:
            assert client.call("POST", MAPS, {"metadata": {"name": "there"}}).status == 201
        assert not list(tmp_path.rglob("tetrapod.db"))


def test_data_of_a_real_etcd_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "member").mkdir()
    done = run("etcd_stand_in", "--data-dir", str(tmp_path), f"--listen-client-urls=http://127.0.0.1:{free_port()}")
    assert (done.returncode, "data of a real etcd" in done.stderr) == (1, True)
    done = run("etcd_stand_in", "--listen-client-urls=https://127.0.0.1:1", "--data-dir", os.devnull)
    assert (done.returncode, "only http://" in done.stderr) == (1, True)
