"""CAs of client certificates, from files that may change while the server runs.

Upstream: staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates/dynamic_cafile_content.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from tetrapod.apps.wiring.files import read_file
from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.configuration.watching import watch
from tetrapod.generic.lifecycle import Lifecycle

log = logging.getLogger(__name__)

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


class AuthorityFiles:
    """The CA bundles that one flag names, which are reloaded when their files change.

    Args:
        flag: the flag that names the files, for errors.
        files: the paths of the bundles.
        unnamed: the path of a bundle that is trusted too, but not named to others; "" for none.

    Attributes:
        files: the paths of the bundles.
        unnamed: the paths of bundles that are trusted too, but not named to others.
        pool: verifies client certificates. Its CAs are replaced when a file changes.
        pem: the content of the files, without the unnamed ones.

    Raises:
        click.ClickException: a file cannot be read, or contains no certificates.
    """

    def __init__(self, flag: str, *files: str, unnamed: str = "") -> None:
        self.files: Sequence[str] = files
        self.unnamed: Sequence[str] = (unnamed,) if unnamed else ()
        self.pem = b"\n".join(_read_certificates(file, flag) for file in files)
        self._unnamed_pem = _read_certificates(unnamed, flag) if unnamed else b""
        self.pool = CertificatePool(self._trusted(self.pem))

    def _trusted(self, pem: bytes) -> bytes:
        return b"\n".join((pem, self._unnamed_pem))

    def follow(self, lifecycle: Lifecycle) -> None:
        """Start background tasks that reload the files when they change."""
        for file in self.files:
            lifecycle.background(f"authorities/{file}", watch(file, self._reload))

    async def _reload(self) -> None:
        pem = b"\n".join(await asyncio.gather(*(asyncio.to_thread(Path(file).read_bytes) for file in self.files)))
        if pem != self.pem:
            self.pool.replace(self._trusted(pem))
            self.pem = pem
            log.info("authorities reloaded: %s", ", ".join(self.files))


def _read_certificates(file: str, flag: str) -> bytes:
    pem = read_file(file, flag)
    try:
        if _BEGIN not in pem:
            raise ValueError("data does not contain any valid RSA or ECDSA certificates")
        CertificatePool(pem)
    except ValueError as error:
        raise click.ClickException(f"--{flag}: {file}: {error}") from None
    return pem
