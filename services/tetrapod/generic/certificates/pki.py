"""`write_pki`: creates the certificate files of a self-contained installation and renews them before they expire.

`pki.json` in the same directory records the hash, expiry and hosts of each certificate, so that a start without changes
need not parse certificates. Files that were replaced (their hash differs) are parsed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tetrapod.generic.certificates.authority import Authority

RENEW_BEFORE: Final = 30 * 86400
ADMIN: Final = ("kubernetes-admin", ("system:masters",))
FRONT_PROXY_CLIENT: Final = "front-proxy-client"

_AUTHORITIES: Final = {
    "ca": "tetrapod-ca",
    "client-ca": "tetrapod-client-ca",
    "front-proxy-ca": "tetrapod-front-proxy-ca",
}
_LEAVES: Final = {"apiserver": "ca", "admin": "client-ca", "front-proxy-client": "front-proxy-ca"}


PRIVATE: Final = 0o600
PUBLIC: Final = 0o644


@dataclass(frozen=True, slots=True)
class Pki:
    """The paths of the certificates and keys in a directory. They need not exist."""

    directory: Path

    def certificate(self, name: str) -> Path:
        """Return the path of a certificate, `NAME.crt`."""
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the path of the key of a certificate, `NAME.key`."""
        return self.directory / f"{name}.key"

    @property
    def ca(self) -> Path:
        """The certificate of the CA that issues serving certificates, which clients trust."""
        return self.certificate("ca")

    @property
    def client_ca(self) -> Path:
        """The certificate of the CA that issues client certificates of users."""
        return self.certificate("client-ca")

    @property
    def front_proxy_ca(self) -> Path:
        """The certificate of the CA that issues the client certificate of the front proxy (the aggregator)."""
        return self.certificate("front-proxy-ca")

    @property
    def serving(self) -> tuple[Path, Path]:
        """The paths of the API server's serving certificate and of its key."""
        return self.certificate("apiserver"), self.key("apiserver")

    @property
    def admin(self) -> tuple[Path, Path]:
        """The paths of the administrator's client certificate (in system:masters) and of its key."""
        return self.certificate("admin"), self.key("admin")

    @property
    def front_proxy_client(self) -> tuple[Path, Path]:
        """The paths of the front proxy's client certificate and of its key."""
        return self.certificate("front-proxy-client"), self.key("front-proxy-client")

    @property
    def service_account_key(self) -> Path:
        """The path of the private key that signs service account tokens, for the auth service only."""
        return self.directory / "sa.key"

    @property
    def service_account_public_key(self) -> Path:
        """The path of the public key that verifies service account tokens."""
        return self.directory / "sa.pub"


def write_pki(directory: str | Path, hosts: Iterable[str], *, renew_before: float = RENEW_BEFORE) -> Pki:
    """Create the certificates and keys that are missing or about to expire, and return their paths.

    A new CA also replaces the certificates that it issues. The signing key of service account tokens is created
    once.

    Args:
        directory: the directory of the files, created if it is missing.
        hosts: the DNS names and IP addresses of the serving certificate. It is reissued if one is missing, and
            keeps its earlier hosts.
        renew_before: the seconds before the expiry at which a certificate is replaced.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: an existing certificate or the key of a CA is malformed.
    """
    pki = Pki(Path(directory))
    pki.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    requested_hosts = list(dict.fromkeys(hosts))
    record = _Record(pki)
    deadline = time.time() + renew_before
    new_authorities: dict[str, Authority] = {}
    for name, common_name in _AUTHORITIES.items():
        if not record.is_valid(name, deadline):
            from tetrapod.generic.certificates.authority import Authority

            new_authorities[name] = authority = Authority.create(common_name)
            record.write(name, authority.certificate_pem, authority.key_pem, [])
    _issue_leaves(record, requested_hosts, deadline, new_authorities)
    if not pki.service_account_key.exists():
        from tetrapod.generic.certificates.authority import signing_key

        private, public = signing_key()
        write_file(pki.service_account_public_key, public, PUBLIC)
        write_file(pki.service_account_key, private, PRIVATE)
    record.save()
    return pki


def renew_leaves(pki: Pki, *, renew_before: float = RENEW_BEFORE) -> bool:
    """Replace certificates other than CAs that expire within `renew_before` seconds. Return whether any was replaced.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: a certificate or the key of a CA is malformed.
    """
    record = _Record(pki)
    renewed = _issue_leaves(record, (), time.time() + renew_before, {})
    record.save()
    return renewed


def _issue_leaves(
    record: _Record, hosts: Sequence[str], deadline: float, new_authorities: Mapping[str, Authority]
) -> bool:
    renewed = False
    for name, issuer in _LEAVES.items():
        existing = record.hosts(name)
        missing = [host for host in hosts if host not in existing] if name == "apiserver" else []
        if record.is_valid(name, deadline) and issuer not in new_authorities and not missing:
            continue
        certificate, key = _issue(name, new_authorities.get(issuer) or record.authority(issuer), existing + missing)
        record.write(name, certificate, key, existing + missing)
        renewed = True
    return renewed


def _issue(name: str, authority: Authority, hosts: list[str]) -> tuple[bytes, bytes]:
    if name == "apiserver":
        return authority.issue_server("kube-apiserver", hosts)
    if name == "admin":
        return authority.issue_client(*ADMIN)
    return authority.issue_client(FRONT_PROXY_CLIENT)


class _Record:
    """The content of `pki.json`: an entry with hash, expiry and hosts for each certificate.

    Arguments called `name` are the names of certificates without extension, such as `apiserver` or `client-ca`.
    """

    def __init__(self, pki: Pki) -> None:
        self._pki = pki
        self._path = pki.directory / "pki.json"
        self._changed = False
        try:
            self._entries: dict[str, dict[str, Any]] = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            self._entries = {}

    def is_valid(self, name: str, deadline: float) -> bool:
        """Return whether a certificate and its key exist and it expires after `deadline` (seconds since the epoch)."""
        return bool(self._read_entry(name).get("expires", 0) > deadline)

    def hosts(self, name: str) -> list[str]:
        """Return a copy of the DNS names and IP addresses of a certificate on disk; [] if it or its key is missing."""
        return list(self._read_entry(name).get("hosts", []))

    def authority(self, name: str) -> Authority:
        """Load the CA of this name with its key.

        Raises:
            OSError: the certificate or the key cannot be read.
            ValueError: the certificate or the key is malformed.
        """
        from tetrapod.generic.certificates.authority import Authority

        return Authority.load(self._pki.certificate(name).read_bytes(), self._pki.key(name).read_bytes())

    def _read_entry(self, name: str) -> dict[str, Any]:
        """Return the entry of a certificate on disk, or {} if the certificate or its key is missing.

        A CA may lack its key. If the hash of the certificate differs from that of its entry, the certificate is
        parsed, and the entry replaced.

        Raises:
            ValueError: the certificate is malformed.
        """
        try:
            pem = self._pki.certificate(name).read_bytes()
        except OSError:
            return {}
        if name not in _AUTHORITIES and not self._pki.key(name).exists():
            return {}
        digest = hashlib.sha256(pem).hexdigest()
        entry = self._entries.get(name, {})
        if entry.get("sha256") != digest:
            from tetrapod.generic.certificates import authority

            entry = {"sha256": digest, "expires": authority.expiry(pem), "hosts": authority.hosts(pem)}
            self._entries[name] = entry
            self._changed = True
        return entry

    def write(self, name: str, certificate: bytes, key: bytes, hosts: list[str]) -> None:
        """Write the files of a certificate and its key, and update its entry in memory. Call `save` afterwards.

        Args:
            name: the name of the certificate.
            certificate: the certificate as PEM.
            key: its key as PEM, written with mode 0600.
            hosts: the DNS names and IP addresses to record.

        Raises:
            OSError: a file cannot be written.
        """
        from tetrapod.generic.certificates import authority

        write_file(self._pki.key(name), key, PRIVATE)
        write_file(self._pki.certificate(name), certificate, PUBLIC)
        digest = hashlib.sha256(certificate).hexdigest()
        self._entries[name] = {"sha256": digest, "expires": authority.expiry(certificate), "hosts": hosts}
        self._changed = True

    def save(self) -> None:
        """Write `pki.json`, if an entry has changed since it was read.

        Raises:
            OSError: the file cannot be written.
        """
        if self._changed:
            write_file(self._path, json.dumps(self._entries, indent=1).encode(), PUBLIC)


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically. Private files are never readable by others, not even while they are written.

    Args:
        path: the file; its directory exists.
        data: the new content.
        mode: the permissions of the file, also if it existed with others.

    Raises:
        OSError: the file cannot be written; an existing one is left unchanged.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "wb") as file:
        if hasattr(os, "fchmod"):  # on Windows since Python 3.13, and without effect on who may read the file
            os.fchmod(descriptor, mode)
        file.write(data)
    os.replace(temporary, path)
