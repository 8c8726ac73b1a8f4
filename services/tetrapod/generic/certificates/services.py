"""Certificates of the four services where they run apart: a directory each, holding what that service needs and no more.

OUT/ca/ keeps the authorities' keys (for renewal; it need not be where the services run). A service's directory has its serving
certificate, its own client certificate, and the authorities to trust; the front-proxy client certificate is the aggregator's
alone, the signing key auth's alone. etcd has an authority of its own, so that no user's certificate opens it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tetrapod.generic.authentication.services import SERVICES_GROUP
from tetrapod.generic.certificates.pki import Pki, write_pki

if TYPE_CHECKING:
    from tetrapod.generic.certificates.authority import Authority

SERVICES: Final = ("aggregator", "core", "extensions", "auth")
_TRUST: Final = ("ca", "client-ca", "front-proxy-ca")


def write_service_certificates(out: str | Path, hosts: Sequence[str]) -> Pki:
    """Make what is missing. `hosts` are further names of the aggregator, by which users reach it."""
    from tetrapod.generic.certificates.authority import Authority

    out = Path(out)
    pki = write_pki(out / "ca", hosts)
    serving = Authority.load(pki.ca.read_bytes(), pki.key("ca").read_bytes())
    clients = Authority.load(pki.client_ca.read_bytes(), pki.key("client-ca").read_bytes())
    for service in SERVICES:
        directory = out / service
        directory.mkdir(parents=True, exist_ok=True)
        _copy_trust(pki, directory)
        if service == "aggregator":
            _copy(pki.serving, directory, "tls")
            _copy(pki.front_proxy_client, directory, "front-proxy-client")
        elif not (directory / "tls.crt").exists():
            _write(
                directory, "tls", serving.issue_server(f"tetrapod-{service}", [service, f"tetrapod-{service}", "localhost", "127.0.0.1"])
            )
        if not (directory / "client.crt").exists():
            _write(directory, "client", _issue_client(clients, service))
    _write_etcd_certificates(out)
    shutil.copy(pki.service_account_key, out / "auth" / "sa.key")
    _mode(out / "auth" / "sa.key")
    return pki


def _write_etcd_certificates(out: Path) -> None:
    """OUT/etcd for etcd itself and its health check; etcd-ca.crt, etcd-client.crt and its key for each service."""
    authority = _etcd_authority(out / "ca")
    directory = out / "etcd"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "ca.crt").write_bytes(authority.certificate_pem)
    if not (directory / "tls.crt").exists():
        _write(directory, "tls", authority.issue_server("etcd", ["etcd", "localhost", "127.0.0.1"]))
        _write(directory, "client", authority.issue_client("etcd-health"))
    for service in SERVICES:
        (out / service / "etcd-ca.crt").write_bytes(authority.certificate_pem)
        if not (out / service / "etcd-client.crt").exists():
            _write(out / service, "etcd-client", authority.issue_client(f"tetrapod-{service}"))


def _etcd_authority(directory: Path) -> Authority:
    from tetrapod.generic.certificates.authority import Authority

    certificate, key = directory / "etcd-ca.crt", directory / "etcd-ca.key"
    if certificate.exists():
        return Authority.load(certificate.read_bytes(), key.read_bytes())
    authority = Authority.create("tetrapod-etcd-ca")
    _write(directory, "etcd-ca", (authority.certificate_pem, authority.key_pem))
    return authority


def _issue_client(clients: Authority, service: str) -> tuple[bytes, bytes]:
    """Controllers act on everything; the group of the services opens auth's internal endpoints."""
    return clients.issue_client(f"system:tetrapod:{service}", ("system:masters", SERVICES_GROUP))


def _copy_trust(pki: Pki, directory: Path) -> None:
    for name in _TRUST:
        shutil.copy(pki.certificate(name), directory / f"{name}.crt")


def _copy(pair: tuple[Path, Path], directory: Path, name: str) -> None:
    shutil.copy(pair[0], directory / f"{name}.crt")
    shutil.copy(pair[1], directory / f"{name}.key")
    _mode(directory / f"{name}.key")


def _write(directory: Path, name: str, pair: tuple[bytes, bytes]) -> None:
    (directory / f"{name}.crt").write_bytes(pair[0])
    (directory / f"{name}.key").write_bytes(pair[1])
    _mode(directory / f"{name}.key")


def _mode(path: Path) -> None:
    path.chmod(0o600)
