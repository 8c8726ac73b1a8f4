"""`write_pki`: the files of a self-contained installation, made once, kept while they are good, renewed before they are not.

`pki.json` beside them remembers what each certificate is and when it expires, so that a start that changes nothing need not parse
certificates. Files that somebody has replaced (their hash differs) are looked at again.
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

_AUTHORITIES: Final = {"ca": "tetrapod-ca", "client-ca": "tetrapod-client-ca", "front-proxy-ca": "tetrapod-front-proxy-ca"}
_LEAVES: Final = {"apiserver": "ca", "admin": "client-ca", "front-proxy-client": "front-proxy-ca"}


@dataclass(frozen=True, slots=True)
class Pki:
    """Where the files are. Every certificate has its key beside it."""

    directory: Path

    def certificate(self, name: str) -> Path:
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    @property
    def ca(self) -> Path:
        """Signs serving certificates; clients trust it."""
        return self.certificate("ca")

    @property
    def client_ca(self) -> Path:
        """Signs the certificates of users."""
        return self.certificate("client-ca")

    @property
    def front_proxy_ca(self) -> Path:
        """Signs the certificate by which the aggregator proves that it may speak for others."""
        return self.certificate("front-proxy-ca")

    @property
    def serving(self) -> tuple[Path, Path]:
        return self.certificate("apiserver"), self.key("apiserver")

    @property
    def admin(self) -> tuple[Path, Path]:
        return self.certificate("admin"), self.key("admin")

    @property
    def front_proxy_client(self) -> tuple[Path, Path]:
        return self.certificate("front-proxy-client"), self.key("front-proxy-client")

    @property
    def service_account_key(self) -> Path:
        """Private; for the auth service alone."""
        return self.directory / "sa.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.directory / "sa.pub"


def write_pki(directory: str | Path, hosts: Iterable[str], *, renew_before: float = RENEW_BEFORE) -> Pki:
    """Make what is missing or about to expire, and add `hosts` to the serving certificate. Names once given stay in it."""
    pki = Pki(Path(directory))
    pki.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    wanted = list(dict.fromkeys(hosts))
    record = _Record(pki)
    deadline = time.time() + renew_before
    fresh: dict[str, Authority] = {}
    for name, common_name in _AUTHORITIES.items():
        if not record.good(name, deadline):
            from tetrapod.generic.certificates.authority import Authority

            fresh[name] = authority = Authority.create(common_name)
            record.write(name, authority.certificate_pem, authority.key_pem, [])
    _issue_leaves(record, wanted, deadline, fresh)
    if not pki.service_account_key.exists():
        from tetrapod.generic.certificates.authority import signing_key

        private, public = signing_key()
        _write(pki.service_account_public_key, public, 0o644)
        _write(pki.service_account_key, private, 0o600)
    record.save()
    return pki


def renew_leaves(pki: Pki, *, renew_before: float = RENEW_BEFORE) -> bool:
    """Make what is about to expire anew, but for authorities; whether there was anything."""
    record = _Record(pki)
    renewed = _issue_leaves(record, (), time.time() + renew_before, {})
    record.save()
    return renewed


def _issue_leaves(record: _Record, wanted: Sequence[str], deadline: float, fresh: Mapping[str, Authority]) -> bool:
    renewed = False
    for name, issuer in _LEAVES.items():
        known = record.hosts(name)
        missing = [host for host in wanted if host not in known] if name == "apiserver" else []
        if record.good(name, deadline) and issuer not in fresh and not missing:
            continue
        certificate, key = _issue(name, fresh.get(issuer) or record.authority(issuer), known + missing)
        record.write(name, certificate, key, known + missing)
        renewed = True
    return renewed


def _issue(name: str, authority: Authority, hosts: list[str]) -> tuple[bytes, bytes]:
    if name == "apiserver":
        return authority.issue_server("kube-apiserver", hosts)
    if name == "admin":
        return authority.issue_client(*ADMIN)
    return authority.issue_client(FRONT_PROXY_CLIENT)


class _Record:
    """What `pki.json` knows of each certificate: hash, expiry, hosts."""

    def __init__(self, pki: Pki) -> None:
        self._pki = pki
        self._path = pki.directory / "pki.json"
        self._changed = False
        try:
            self._known: dict[str, dict[str, Any]] = json.loads(self._path.read_text())
        except (OSError, ValueError):
            self._known = {}

    def good(self, name: str, deadline: float) -> bool:
        return bool(self._look(name).get("expires", 0) > deadline)

    def hosts(self, name: str) -> list[str]:
        return list(self._look(name).get("hosts", []))

    def authority(self, name: str) -> Authority:
        from tetrapod.generic.certificates.authority import Authority

        return Authority.load(self._pki.certificate(name).read_bytes(), self._pki.key(name).read_bytes())

    def _look(self, name: str) -> dict[str, Any]:
        """What is on disk; parsed only where the record does not know it. A CA may lack its key: then it cannot sign, no more."""
        try:
            pem = self._pki.certificate(name).read_bytes()
        except OSError:
            return {}
        if name not in _AUTHORITIES and not self._pki.key(name).exists():
            return {}
        digest = hashlib.sha256(pem).hexdigest()
        known = self._known.get(name, {})
        if known.get("sha256") != digest:
            from tetrapod.generic.certificates import authority

            known = {"sha256": digest, "expires": authority.expiry(pem), "hosts": authority.hosts(pem)}
            self._known[name] = known
            self._changed = True
        return known

    def write(self, name: str, certificate: bytes, key: bytes, hosts: list[str]) -> None:
        from tetrapod.generic.certificates import authority

        _write(self._pki.key(name), key, 0o600)
        _write(self._pki.certificate(name), certificate, 0o644)
        digest = hashlib.sha256(certificate).hexdigest()
        self._known[name] = {"sha256": digest, "expires": authority.expiry(certificate), "hosts": hosts}
        self._changed = True

    def save(self) -> None:
        if self._changed:
            _write(self._path, json.dumps(self._known, indent=1).encode(), 0o644)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all; private files are never readable by others, not even for a moment."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
    os.replace(temporary, path)
