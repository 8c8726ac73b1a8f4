"""Certificates of the four services where they run apart: a directory each, holding what that service needs and no more.

OUT/ca/ keeps the authorities' keys (for renewal; it need not be where the services run). A service's directory has its serving
certificate, its own client certificate, and the authorities to trust; the front-proxy client certificate is the aggregator's
alone, the signing key auth's alone. etcd has an authority of its own, so that no user's certificate opens it. OUT/monitoring
opens /metrics, by upstream's group for that, and nothing else.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tetrapod.generic.among_services.names import SERVICES_GROUP
from tetrapod.generic.certificates.pki import RENEW_BEFORE, Pki, write_pki

if TYPE_CHECKING:
    from tetrapod.generic.certificates.authority import Authority

SERVICES: Final = ("aggregator", "core", "extensions", "auth")
DIRECTORIES: Final = ("ca", "admin", "monitoring", *SERVICES, "etcd")
"""What is made below OUT."""
PEER: Final = "etcd-peer"
"""The name that members of etcd know each other by."""
_TRUST: Final = ("ca", "client-ca", "front-proxy-ca")
_LOCAL: Final = ("localhost", "127.0.0.1")

Pair = tuple[bytes, bytes]


def write_service_certificates(
    out: str | Path,
    hosts: Sequence[str],
    *,
    service_hosts: Sequence[str] = (),
    etcd_hosts: Sequence[str] = (),
    renew_before: float = RENEW_BEFORE,
) -> Pki:
    """Make what is missing, lacks a name, or expires soon.

    Args:
        hosts: further names of the aggregator, by which users reach it.
        service_hosts: further names of every service and of etcd; `{service}` stands for which.
        etcd_hosts: further names of etcd's members.
    """
    from tetrapod.generic.certificates.authority import Authority

    out = Path(out)
    further = {name: [host.replace("{service}", name) for host in service_hosts] for name in (*SERVICES, "etcd")}
    pki = write_pki(out / "ca", [*hosts, *further["aggregator"]], renew_before=renew_before)
    serving = Authority.load(pki.ca.read_bytes(), pki.key("ca").read_bytes())
    clients = Authority.load(pki.client_ca.read_bytes(), pki.key("client-ca").read_bytes())
    keeper = _Keeper(time.time() + renew_before)
    for service in SERVICES:
        directory = out / service
        directory.mkdir(parents=True, exist_ok=True)
        _copy_trust(pki, directory)
        if service == "aggregator":
            _copy(pki.serving, directory, "tls")
            _copy(pki.front_proxy_client, directory, "front-proxy-client")
        else:
            keeper.server(serving, directory, f"tetrapod-{service}", [service, f"tetrapod-{service}", *_LOCAL, *further[service]])
        # The group opens auth's internal endpoints; what each may do at the front door is said by RBAC, by its name.
        keeper.client(clients, directory, "client", f"system:tetrapod:{service}", (SERVICES_GROUP,))
    _write_etcd_certificates(out, keeper, [*further["etcd"], *etcd_hosts])
    monitoring = out / "monitoring"
    monitoring.mkdir(parents=True, exist_ok=True)
    shutil.copy(pki.ca, monitoring / "ca.crt")
    keeper.client(clients, monitoring, "client", "system:tetrapod:monitoring", ("system:monitoring",))
    shutil.copy(pki.service_account_key, out / "auth" / "sa.key")
    _mode(out / "auth" / "sa.key")
    return pki


class _Keeper:
    """Issues a certificate where the one that is there will not do: another authority's, without a name, of
    other groups, or near its end."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def server(self, authority: Authority, directory: Path, name: str, hosts: Sequence[str]) -> None:
        self._keep(authority, directory, "tls", hosts, (), lambda: authority.issue_server(name, hosts))

    def client(self, authority: Authority, directory: Path, file: str, user: str, groups: Sequence[str] = ()) -> None:
        self._keep(authority, directory, file, (), groups, lambda: authority.issue_client(user, groups))

    def peer(self, authority: Authority, directory: Path, hosts: Sequence[str]) -> None:
        self._keep(authority, directory, "peer", hosts, (), lambda: authority.issue_peer(PEER, hosts))

    def _keep(
        self, authority: Authority, directory: Path, file: str, hosts: Sequence[str], groups: Sequence[str], issue: Callable[[], Pair]
    ) -> None:
        if not self._good(authority, directory, file, hosts, groups):
            _write(directory, file, issue())

    def _good(self, authority: Authority, directory: Path, file: str, hosts: Sequence[str], groups: Sequence[str]) -> bool:
        from tetrapod.generic.certificates import authority as x509

        if not (directory / f"{file}.key").exists():
            return False
        try:
            pem = (directory / f"{file}.crt").read_bytes()
            named = set(hosts) <= set(x509.hosts(pem)) and set(groups) == set(x509.groups(pem))
            return authority.issued(pem) and x509.expiry(pem) > self._deadline and named
        except (OSError, ValueError):
            return False


def _write_etcd_certificates(out: Path, keeper: _Keeper, hosts: Sequence[str]) -> None:
    """OUT/etcd for etcd itself, its peers and its health check; etcd-ca.crt, etcd-client.crt and its key for each service."""
    authority = _etcd_authority(out / "ca")
    directory = out / "etcd"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "ca.crt").write_bytes(authority.certificate_pem)
    keeper.server(authority, directory, "etcd", ["etcd", *_LOCAL, *hosts])
    keeper.peer(authority, directory, ["etcd", *_LOCAL, *hosts])
    keeper.client(authority, directory, "client", "etcd-health")
    for service in SERVICES:
        (out / service / "etcd-ca.crt").write_bytes(authority.certificate_pem)
        keeper.client(authority, out / service, "etcd-client", f"tetrapod-{service}")


def _etcd_authority(directory: Path) -> Authority:
    from tetrapod.generic.certificates.authority import Authority

    certificate, key = directory / "etcd-ca.crt", directory / "etcd-ca.key"
    if certificate.exists():
        return Authority.load(certificate.read_bytes(), key.read_bytes())
    authority = Authority.create("tetrapod-etcd-ca")
    _write(directory, "etcd-ca", (authority.certificate_pem, authority.key_pem))
    return authority


def _copy_trust(pki: Pki, directory: Path) -> None:
    for name in _TRUST:
        shutil.copy(pki.certificate(name), directory / f"{name}.crt")


def _copy(pair: tuple[Path, Path], directory: Path, name: str) -> None:
    shutil.copy(pair[0], directory / f"{name}.crt")
    shutil.copy(pair[1], directory / f"{name}.key")
    _mode(directory / f"{name}.key")


def _write(directory: Path, name: str, pair: Pair) -> None:
    (directory / f"{name}.crt").write_bytes(pair[0])
    (directory / f"{name}.key").write_bytes(pair[1])
    _mode(directory / f"{name}.key")


def _mode(path: Path) -> None:
    path.chmod(0o600)
