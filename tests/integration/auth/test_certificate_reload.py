"""Certificates and CAs that are replaced while the server runs: who is trusted, who is named, and what others learn.

Upstream: test/integration/apiserver/certreload.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.https_client import HttpsClient
from support.server import Server, running
from support.waiting import until
from tetrapod.generic.certificates.authority import Authority

pytestmark = pytest.mark.long

TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_HANDSHAKE, _CERTIFICATE_REQUEST = 22, 13
_SOON = 4
"""Seconds after which upstream's test expects that a replaced file is in use."""


def named_authorities(server: Server) -> list[bytes]:
    """Return the names, as DER, of the CAs that the server names to clients in a handshake.

    The handshake is that of TLS 1.2, which sends them unencrypted.
    """
    context = ssl._create_unverified_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing)
    address = urlsplit(server.url)
    received = b""
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=10) as peer:
        while True:
            try:
                connection.do_handshake()
                break
            except ssl.SSLWantReadError:
                peer.sendall(outgoing.read())
                received += (data := peer.recv(65536))
                incoming.write(data)
    return _names(_messages(received)[_CERTIFICATE_REQUEST])


def _messages(records: bytes) -> dict[int, bytes]:
    """Return the bodies of the unencrypted handshake messages, by type."""
    stream, at = b"", 0
    while at < len(records) and records[at] == _HANDSHAKE:
        length = int.from_bytes(records[at + 3 : at + 5], "big")
        stream += records[at + 5 : at + 5 + length]
        at += 5 + length
    messages, at = {}, 0
    while at < len(stream):
        length = int.from_bytes(stream[at + 1 : at + 4], "big")
        messages[stream[at]] = stream[at + 4 : at + 4 + length]
        at += 4 + length
    return messages


def _names(request: bytes) -> list[bytes]:
    """Return the names in a CertificateRequest, which follow its certificate types and signature algorithms."""
    at = 1 + request[0]
    at += 2 + int.from_bytes(request[at : at + 2], "big") + 2
    names = []
    while at < len(request):
        length = int.from_bytes(request[at : at + 2], "big")
        names.append(request[at + 2 : at + 2 + length])
        at += 2 + length
    return names


@dataclass
class Replacing:
    server: Server
    client: HttpsClient
    directory: Path
    users: Authority
    proxies: Authority

    def replace(self, name: str, authority: Authority) -> None:
        """Write a CA to a file that a flag names, after its removal."""
        file = self.directory / name
        file.unlink()
        file.write_bytes(authority.certificate_pem)

    def trust(self) -> dict[str, str]:
        """Return the data of the ConfigMap from which extension API servers learn whom to trust."""
        found: dict[str, str] = self.client.call("GET", TRUST).body["data"]
        return found


@pytest.fixture
def replacing(tmp_path: Path) -> Iterator[Replacing]:
    users, proxies = Authority.create("the-users"), Authority.create("the-proxies")
    (tmp_path / "users.crt").write_bytes(users.certificate_pem)
    (tmp_path / "proxies.crt").write_bytes(proxies.certificate_pem)
    flags = (f"--client-ca-file={tmp_path}/users.crt", f"--requestheader-client-ca-file={tmp_path}/proxies.crt")
    with running(tmp_path / "data", *flags, "--requestheader-allowed-names=front") as server:
        yield Replacing(server, HttpsClient(server.kubeconfig), tmp_path, users, proxies)


def test_the_authorities_of_the_flags_are_named_and_no_others(replacing: Replacing) -> None:
    names = named_authorities(replacing.server)
    assert [b"the-users" in names[0], b"the-proxies" in names[-1], len(names)] == [True, True, 2]
    assert replacing.trust()["client-ca-file"] == replacing.users.certificate_pem.decode()
    assert replacing.client.call("GET", "/api/v1/nodes").status == 200  # the administrator of the server's own CA


def test_replaced_authorities_are_named_and_published_beside_the_former_ones(replacing: Replacing) -> None:
    users, proxies = Authority.create("other-users"), Authority.create("other-proxies")
    replacing.replace("users.crt", users)
    replacing.replace("proxies.crt", proxies)
    until(
        lambda: named_authorities(replacing.server),
        lambda names: [b"other-users" in names[0], b"other-proxies" in names[-1], len(names)] == [True, True, 2],
        timeout=_SOON,
    )
    both = {
        "client-ca-file": (replacing.users.certificate_pem + users.certificate_pem).decode(),
        "requestheader-client-ca-file": (replacing.proxies.certificate_pem + proxies.certificate_pem).decode(),
    }
    until(replacing.trust, lambda data: data | both == data, timeout=10)


def test_the_published_lists_are_united_with_those_of_another_server(replacing: Replacing) -> None:
    other = Authority.create("of another server").certificate_pem.decode()
    data = {"client-ca-file": other, "requestheader-allowed-names": json.dumps(["of another server", "front"])}
    replacing.client.call("PUT", TRUST, _config_map(replacing.trust() | data))
    third = Authority.create("third")
    replacing.replace("users.crt", third)
    found = until(replacing.trust, lambda found: found["client-ca-file"] != other, timeout=10)
    assert found["client-ca-file"] == other + third.certificate_pem.decode()
    assert json.loads(found["requestheader-allowed-names"]) == ["of another server", "front"]


def _config_map(data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize("flag", ["cert-dir", "tls-cert-file", "tls-sni-cert-key"])
def test_a_replaced_serving_certificate_is_presented_soon(tmp_path: Path, flag: str) -> None:
    authority = Authority.create("serving")
    certificate, key = tmp_path / "apiserver.crt", tmp_path / "apiserver.key"

    def write() -> bytes:
        issued = authority.issue_server("localhost", ["localhost"])
        certificate.write_bytes(issued[0])
        key.write_bytes(issued[1])
        return ssl.PEM_cert_to_DER_cert(issued[0].decode())

    first = write()
    flags = {
        "cert-dir": (f"--cert-dir={tmp_path}",),
        "tls-cert-file": (f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"),
        "tls-sni-cert-key": (f"--tls-sni-cert-key={certificate},{key}:localhost",),
    }
    with running(tmp_path / "data", *flags[flag]) as server:
        assert _presented(server) == first
        certificate.unlink()
        key.unlink()
        second = write()
        until(lambda: _presented(server), lambda found: found == second, timeout=_SOON)


def _presented(server: Server) -> bytes | None:
    address = urlsplit(server.url)
    with (
        socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=10) as peer,
        ssl._create_unverified_context().wrap_socket(peer, server_hostname="localhost") as connection,
    ):
        return connection.getpeercert(binary_form=True)
