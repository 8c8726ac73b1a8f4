"""The certificates of the services expire while they run, and an operator renews them afterwards."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from chaos.worlds import FourServices
from support.waiting import until
from tetrapod.generic.certificates.authority import Authority, expiry, groups, hosts
from tetrapod.generic.certificates.pki import PRIVATE, PUBLIC, write_file

LIFE: Final = timedelta(seconds=6)
"""The rest of the life of the certificates. The services load changed files within about a second."""


class Expire:
    """Let all certificates of services expire: those with which they serve, and those with which they authenticate.

    They are replaced by certificates that are valid for a few seconds, which the services load. Connections that were
    established before stay open. `tetrapod certs` renews the certificates, and no service is restarted.
    """

    def __init__(self, world: FourServices, keys: Sequence[str], hold: float = 3.0) -> None:
        self.hold = hold
        self._world = world
        self._keys = keys

    def inject(self) -> str:
        authority = self._authority("ca")
        for name in sorted({key.partition("-")[0] for key in self._keys}):
            directory = self._world.services.certs / name
            serving = (directory / "tls.crt").read_bytes()
            _replace(directory, "tls", authority.issue_server(f"tetrapod-{name}", hosts(serving), LIFE))
            self._replace_client(directory, "client", "client-ca")
            if name == "aggregator":
                self._replace_client(directory, "front-proxy-client", "front-proxy-ca")
        self._wait("has expired", lambda seconds: seconds <= 0)
        return f"the certificates of {', '.join(self._keys)} have expired"

    def heal(self) -> None:
        self._world.services.issue_certificates()
        self._wait("is renewed", lambda seconds: seconds > LIFE.total_seconds())

    def _wait(self, what: str, condition: Callable[[float], bool]) -> None:
        """Wait until a condition is true of the remaining life of the certificates that all services present."""
        for key in self._keys:
            until(partial(self._remaining, key), condition, description=f"the certificate of {key} {what}")

    def _remaining(self, key: str) -> float:
        """Return the seconds for which the certificate that a service presents is still valid."""
        address = urlsplit(self._world.services.address(key))
        assert address.hostname is not None and address.port is not None
        certificate = ssl.get_server_certificate((address.hostname, address.port), timeout=10)
        return expiry(certificate.encode()) - time.time()

    def _authority(self, name: str) -> Authority:
        directory = self._world.services.certs / "ca"
        return Authority.load((directory / f"{name}.crt").read_bytes(), (directory / f"{name}.key").read_bytes())

    def _replace_client(self, directory: Path, file: str, authority: str) -> None:
        existing = (directory / f"{file}.crt").read_bytes()
        [user] = x509.load_pem_x509_certificate(existing).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        _replace(directory, file, self._authority(authority).issue_client(str(user.value), groups(existing), LIFE))


def _replace(directory: Path, file: str, pair: tuple[bytes, bytes]) -> None:
    certificate, key = pair
    write_file(directory / f"{file}.key", key, PRIVATE)
    write_file(directory / f"{file}.crt", certificate, PUBLIC)
