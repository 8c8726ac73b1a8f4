"""The certificates of the four services as separate processes: one directory each, with only what that service needs.

Below a directory OUT:

- `ca` has the CAs with their keys, for renewal. It need not be where the services run.
- `aggregator`, `core`, `extensions` and `auth` have the serving certificate, the client certificate and the CAs to
  trust. Only the aggregator has the front proxy's client certificate, and only auth the signing key.
- `etcd` has certificates of a CA of its own, so that users' certificates cannot access etcd.
- `admin` has the administrator's kubeconfig.
- `monitoring` has a certificate that can read /metrics, through upstream's group for it, and nothing else.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tetrapod.generic.certificates.pki import PRIVATE, PUBLIC, RENEW_BEFORE, Pki, write_file, write_pki
from tetrapod.machinery.user import SERVICES_GROUP

if TYPE_CHECKING:
    from tetrapod.generic.certificates.authority import Authority

SERVICES: Final = ("aggregator", "core", "extensions", "auth")
DIRECTORIES: Final = ("ca", "admin", "monitoring", *SERVICES, "etcd")
"""The directories below OUT."""
PEER: Final = "etcd-peer"
"""The name in the certificates of etcd members."""
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
    """Create the certificates that are missing, lack a host, or expire soon, and return the paths of those in OUT/ca.

    The trusted CAs are copied to the directories of the services.

    Args:
        out: the directory OUT, created if it is missing.
        hosts: additional DNS names and IP addresses of the aggregator, by which users reach it.
        service_hosts: additional names of every service and of etcd; `{service}` is replaced by the service's name.
        etcd_hosts: additional names of etcd's members.
        renew_before: seconds before the expiry at which certificates are renewed.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: an existing certificate or the key of a CA is malformed.
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
            keeper.server(
                serving, directory, f"tetrapod-{service}", [service, f"tetrapod-{service}", *_LOCAL, *further[service]]
            )
        # The group grants access to auth's internal endpoints; RBAC grants the service, by its user name, access to the
        # aggregator's API.
        keeper.client(clients, directory, "client", f"system:tetrapod:{service}", (SERVICES_GROUP,))
    _write_etcd_certificates(out, keeper, [*further["etcd"], *etcd_hosts])
    monitoring = out / "monitoring"
    monitoring.mkdir(parents=True, exist_ok=True)
    shutil.copy(pki.ca, monitoring / "ca.crt")
    keeper.client(clients, monitoring, "client", "system:tetrapod:monitoring", ("system:monitoring",))
    write_file(out / "auth" / "sa.key", pki.service_account_key.read_bytes(), PRIVATE)
    return pki


class _Keeper:
    """An issuer of certificates that does not replace valid existing ones.

    An existing certificate is valid if it is from the same CA, has the names and groups, and expires after `deadline`
    (seconds since the epoch). Its methods raise OSError if a file cannot be written.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def server(self, authority: Authority, directory: Path, name: str, hosts: Sequence[str]) -> None:
        """Issue a serving certificate to `directory`/tls.crt and tls.key, unless a valid one exists.

        Args:
            authority: the CA that issues it.
            directory: the existing directory of both files.
            name: its common name.
            hosts: the DNS names and IP addresses that it must have.
        """
        self._issue_unless_valid(authority, directory, "tls", hosts, (), lambda: authority.issue_server(name, hosts))

    def client(self, authority: Authority, directory: Path, file: str, user: str, groups: Sequence[str] = ()) -> None:
        """Issue a client certificate to `directory`/`file`.crt and .key, unless a valid one exists.

        Args:
            authority: the CA that issues it.
            directory: the existing directory of both files.
            file: the file names without extension.
            user: its common name. An existing certificate is not replaced because of another name.
            groups: its organizations. An existing certificate must have exactly these.
        """
        self._issue_unless_valid(authority, directory, file, (), groups, lambda: authority.issue_client(user, groups))

    def peer(self, authority: Authority, directory: Path, hosts: Sequence[str]) -> None:
        """Issue a certificate of an etcd member to `directory`/peer.crt and peer.key, unless a valid one exists.

        `authority` issues it. `hosts` are the DNS names and IP addresses that it must have.
        """
        self._issue_unless_valid(authority, directory, "peer", hosts, (), lambda: authority.issue_peer(PEER, hosts))

    def _issue_unless_valid(
        self,
        authority: Authority,
        directory: Path,
        file: str,
        hosts: Sequence[str],
        groups: Sequence[str],
        issue: Callable[[], Pair],
    ) -> None:
        if not self._good(authority, directory, file, hosts, groups):
            _write(directory, file, issue())

    def _good(
        self, authority: Authority, directory: Path, file: str, hosts: Sequence[str], groups: Sequence[str]
    ) -> bool:
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
    """Issue the missing or expiring certificates of etcd, and each service's client certificate for etcd.

    OUT/etcd has those of etcd's listener, peers and health check. Each service gets etcd-ca.crt, etcd-client.crt and
    its key.

    Args:
        out: the directory OUT; the CA of etcd is in OUT/ca. The directories of the services exist.
        keeper: issues a certificate unless a valid one exists.
        hosts: further DNS names and IP addresses of etcd's members, besides `etcd` and the local ones.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: an existing certificate or the key of the CA is malformed.
    """
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
    _write(directory, name, (pair[0].read_bytes(), pair[1].read_bytes()))


def _write(directory: Path, name: str, pair: Pair) -> None:
    write_file(directory / f"{name}.key", pair[1], PRIVATE)
    write_file(directory / f"{name}.crt", pair[0], PUBLIC)
