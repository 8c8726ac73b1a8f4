"""Tests of cert-manager, installed by its Helm chart.

Its controller, webhook and cainjector are processes with the rights that the chart gives them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neighbours import programs
from neighbours.conftest import Site
from support.endpoints import endpoint_slice, own_address
from support.helm import helm
from support.server import free_port
from support.waiting import until

pytestmark = pytest.mark.timeout(900)

MODULE = "github.com/cert-manager/cert-manager"
NAMESPACE = "cert-manager"
ACCOUNTS = {"controller": "cert-manager", "webhook": "cert-manager-webhook", "cainjector": "cert-manager-cainjector"}


@pytest.fixture(scope="module", autouse=True)
def cert_manager(site: Site) -> Iterator[None]:
    """Install cert-manager and wait until its webhook is called with the CA that cainjector has set."""
    binary = programs.built("cert-manager")
    chart = programs.files_of("cert-manager", MODULE) / "deploy/charts/cert-manager"
    flags = ("--namespace", NAMESPACE, "--create-namespace", "--set", "crds.enabled=true,startupapicheck.enabled=false")
    helm("install", NAMESPACE, str(chart), *flags, kubectl=site.kubectl)
    port = free_port()
    endpoint = endpoint_slice("cert-manager-webhook", port, own_address(), "https")
    site.kubectl("apply", f"--namespace={NAMESPACE}", "-f", "-", stdin=json.dumps(endpoint))
    with contextlib.ExitStack() as stack:
        for command, account in ACCOUNTS.items():
            kubeconfig = programs.as_service_account(site.kubectl, site.directory, NAMESPACE, account)
            options = ["-port", str(port)] if command == "webhook" else []
            log = site.directory / f"{account}.log"
            stack.enter_context(programs.program(log, binary, command, "-kubeconfig", kubeconfig, *options))
        until(lambda: apply(site, issuer("probe", {"selfSigned": {}})).returncode == 0, description="the webhook")
        yield


def apply(site: Site, obj: Any) -> subprocess.CompletedProcess[str]:
    return site.kubectl.run("apply", "-f", "-", stdin=json.dumps(obj))


def issuer(name: str, spec: Any) -> Any:
    return {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name}, "spec": spec}


def certificate(name: str, issuer_name: str, **spec: Any) -> Any:
    body = {"secretName": f"{name}-tls", "issuerRef": {"name": issuer_name, "kind": "Issuer"}, **spec}
    return {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name}, "spec": body}


def secret_files(site: Site, name: str) -> dict[str, Path]:
    """Write the values of a Secret to files, and return the files by key."""
    files = {}
    for key, value in site.kubectl.json("get", "secret", name)["data"].items():
        files[key] = site.directory / f"{name}-{key}"
        files[key].write_bytes(base64.b64decode(value))
    return files


def openssl(*args: object) -> str:
    argv = ["openssl", *map(str, args)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_a_certificate_of_a_ca_becomes_a_secret_that_openssl_verifies(site: Site) -> None:
    root = certificate("root", "selfsigned", isCA=True, commonName="root")
    leaf = certificate("leaf", "root", dnsNames=["leaf.example.com"], privateKey={"algorithm": "ECDSA"})
    for obj in (
        issuer("selfsigned", {"selfSigned": {}}),
        issuer("root", {"ca": {"secretName": "root-tls"}}),
        root,
        leaf,
    ):
        assert apply(site, obj).returncode == 0
    site.kubectl("wait", "certificate/root", "certificate/leaf", "--for=condition=Ready", "--timeout=60s", timeout=90)
    files = secret_files(site, "leaf-tls")
    assert set(files) == {"ca.crt", "tls.crt", "tls.key"}
    arguments = ("-CAfile", files["ca.crt"], "-verify_hostname", "leaf.example.com", files["tls.crt"])
    assert openssl("verify", *arguments) == f"{files['tls.crt']}: OK\n"
    public_keys = (
        openssl("x509", "-in", files["tls.crt"], "-noout", "-pubkey"),
        openssl("pkey", "-in", files["tls.key"], "-pubout"),
    )
    assert public_keys[0] == public_keys[1]


def test_a_deleted_secret_is_issued_again(site: Site) -> None:
    apply(site, issuer("selfsigned", {"selfSigned": {}}))
    apply(site, certificate("again", "selfsigned", commonName="again"))
    site.kubectl("wait", "certificate/again", "--for=condition=Ready", "--timeout=60s", timeout=90)
    first = secret_files(site, "again-tls")["tls.crt"].read_bytes()
    site.kubectl("delete", "secret", "again-tls")
    site.kubectl.exists("secret/again-tls", timeout=60)
    assert secret_files(site, "again-tls")["tls.crt"].read_bytes() != first
    assert site.kubectl("get", "certificate", "again", "-o", "jsonpath={.status.revision}") == "2"


def test_the_webhook_rejects_an_invalid_certificate(site: Site) -> None:
    rejected = apply(site, certificate("bad", "selfsigned", commonName="x" * 65))
    assert rejected.returncode != 0
    assert (
        'admission webhook "webhook.cert-manager.io" denied the request: '
        "spec.commonName: Too long: may not be more than 64 bytes" in rejected.stderr
    ), rejected.stderr


def test_columns_and_short_names_of_its_definitions_are_shown(site: Site) -> None:
    header, row = site.kubectl("get", "issuers", "probe", "-o", "wide").splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "AGE"]
    assert row.split()[:2] == ["probe", "True"]
    assert "certificates" in site.kubectl("api-resources", "--categories=cert-manager")
