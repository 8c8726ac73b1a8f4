"""A server with the key of a CA approves and signs certificate requests, as kube-controller-manager does."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from support.failing_starts import failed_start
from support.https_client import HttpsClient, Reply
from support.server import running
from tetrapod.generic.certificates.authority import Authority

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT_USAGES = ["digital signature", "client auth"]


def authority(directory: Path) -> tuple[Path, Path]:
    ca = Authority.create("signer")
    certificate, key = directory / "signer.crt", directory / "signer.key"
    certificate.write_bytes(ca.certificate_pem)
    key.write_bytes(ca.key_pem)
    return certificate, key


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, ca: tuple[Path, Path]) -> Iterator[HttpsClient]:
    flags = [f"--cluster-signing-cert-file={ca[0]}", f"--cluster-signing-key-file={ca[1]}"]
    with running(tmp_path_factory.mktemp("signing"), *flags) as server:
        yield HttpsClient(server.kubeconfig)


def pem(user: str, *organizations: str, hosts: tuple[str, ...] = ()) -> str:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), False)
    request = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(request.public_bytes(Encoding.PEM)).decode()


def create(client: HttpsClient, name: str, request: str, signer: str, usages: list[str], **spec: Any) -> None:
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": request, "signerName": signer, "usages": usages, **spec},
    }
    assert client.call("POST", REQUESTS, body).status == 201


def approve(client: HttpsClient, name: str) -> None:
    stored = client.call("GET", f"{REQUESTS}/{name}").body
    stored["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test", "message": "approved"}]}
    assert client.call("PUT", f"{REQUESTS}/{name}/approval", stored).status == 200


def conditions(reply: Reply) -> list[tuple[str, str, str]]:
    return [(c["type"], c["reason"], c["message"]) for c in (reply.body.get("status") or {}).get("conditions") or ()]


def certificate(reply: Reply) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(reply.body["status"]["certificate"]))


def when(client: HttpsClient, name: str, condition: Callable[[Reply], bool]) -> Reply:
    reply = client.until(condition, "GET", f"{REQUESTS}/{name}")
    assert condition(reply), reply.body
    return reply


def signed(reply: Reply) -> bool:
    return bool((reply.body.get("status") or {}).get("certificate"))


def test_an_approved_request_gets_a_certificate_of_the_ca(client: HttpsClient, ca: tuple[Path, Path]) -> None:
    create(client, "jane", pem("jane", "developers"), CLIENT, CLIENT_USAGES, expirationSeconds=3600)
    approve(client, "jane")
    issued = certificate(when(client, "jane", signed))
    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(ca[0].read_bytes()))
    assert issued.subject.rfc4514_string() == "CN=jane,O=developers"
    usages = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert (list(usages.value), usages.critical) == ([ExtendedKeyUsageOID.CLIENT_AUTH], False)
    key_usage = issued.extensions.get_extension_for_class(x509.KeyUsage)
    assert (key_usage.value.digital_signature, key_usage.value.key_encipherment, key_usage.critical) == (
        True,
        False,
        True,
    )
    constraints = issued.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.ca, constraints.critical) == (False, True)
    assert issued.not_valid_after_utc - issued.not_valid_before_utc == timedelta(hours=1, minutes=5)


def test_a_request_without_approval_is_not_signed(client: HttpsClient) -> None:
    create(client, "waiting", pem("joe"), CLIENT, CLIENT_USAGES)
    create(client, "later", pem("joe"), CLIENT, CLIENT_USAGES)
    approve(client, "later")
    when(client, "later", signed)
    assert not signed(client.call("GET", f"{REQUESTS}/waiting"))


def test_a_client_certificate_of_a_kubelet_is_approved_and_signed(client: HttpsClient) -> None:
    create(client, "node", pem("system:node:one", "system:nodes"), KUBELET, CLIENT_USAGES)
    reply = when(client, "node", signed)
    message = "Auto approving kubelet client certificate after SubjectAccessReview."
    assert conditions(reply) == [("Approved", "AutoApproved", message)]
    assert certificate(reply).subject.rfc4514_string() == "CN=system:node:one,O=system:nodes"


def test_a_request_that_breaks_the_rules_of_its_signer_fails(client: HttpsClient) -> None:
    usages = ["digital signature", "server auth"]
    create(client, "serving", pem("system:node:one", "system:nodes"), SERVING, usages)
    approve(client, "serving")
    reply = when(client, "serving", lambda r: len(conditions(r)) > 1)
    assert conditions(reply)[1] == (
        "Failed",
        "SignerValidationFailure",
        "DNS or IP subjectAltName is required",
    )
    assert not signed(reply)


def test_a_serving_certificate_keeps_the_names_of_the_request(client: HttpsClient) -> None:
    usages = ["digital signature", "server auth"]
    create(client, "named", pem("system:node:one", "system:nodes", hosts=("one.example",)), SERVING, usages)
    approve(client, "named")
    issued = certificate(when(client, "named", signed))
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["one.example"]


def test_general_and_specific_keys_exclude_each_other(ca: tuple[Path, Path], tmp_path: Path) -> None:
    flags = [f"--cluster-signing-cert-file={ca[0]}", f"--cluster-signing-key-file={ca[1]}"]
    failed = failed_start(tmp_path, *flags, f"--cluster-signing-legacy-unknown-cert-file={ca[0]}")
    assert (
        '"cluster-signing-legacy-unknown": cannot specify cert without key, cannot specify '
        "--cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time"
    ) in failed.stderr
