"""The server and the client certificate that a kubeconfig of ours names."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml


class Identity(NamedTuple):
    """The URL of a server and its CA bundle, and the certificate and key of a client; all but the URL are PEM."""

    url: str
    ca: bytes
    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        """Return a TLS context that presents the certificate, and accepts any name of the server."""
        context = ssl.create_default_context(cadata=self.ca.decode())
        context.check_hostname = False
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(self.certificate + self.key)
            pair.flush()
            context.load_cert_chain(pair.name)
        return context


def identity_of(kubeconfig: Path) -> Identity:
    """Read the first cluster and the first user of a kubeconfig with inline data."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    data = cluster["certificate-authority-data"], user["client-certificate-data"], user["client-key-data"]
    return Identity(cluster["server"], *map(base64.b64decode, data))
