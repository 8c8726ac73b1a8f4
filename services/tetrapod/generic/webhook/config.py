"""`ClientConfig`: where a webhook is and whom to believe, from the `clientConfig` of a webhook or a custom resource definition.

Follows hookClientConfig of k8s.io/apiserver/pkg/util/webhook/client.go.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from tetrapod.generic.webhook.errors import Unusable
from tetrapod.machinery.gvk import Object

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_UNLOADABLE: Final = "unable to load root certificates: "


@dataclass(frozen=True, slots=True)
class ServiceReference:
    namespace: str
    name: str
    port: int

    @property
    def host(self) -> str:
        """What the certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """`base` is the URL without path and query; `authorities` is PEM, empty where the system's are believed."""

    base: str
    path: str
    authorities: str = ""
    service: ServiceReference | None = None


def client_config(config: Object) -> ClientConfig:
    """
    Raises:
        Unusable: a CA bundle that is none, or a URL that is none.
    """
    authorities = _authorities(config.get("caBundle") or "")
    service = config.get("service")
    if service is not None:
        reference = ServiceReference(service.get("namespace") or "", service.get("name") or "", service.get("port") or 443)
        return ClientConfig(f"https://{reference.host}:{reference.port}", _path(service.get("path") or ""), authorities, reference)
    url = config.get("url") or ""
    if not url:
        raise Unusable("webhook configuration must have either service or URL")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Unusable(f"Unparsable URL: {error}") from None
    return ClientConfig(f"{parts.scheme}://{parts.netloc}", _path(unquote(parts.path)), authorities)


def _path(path: str) -> str:
    """Cleaned as path.Join does, and as a URL writes it."""
    return quote(posixpath.normpath(f"/{path.lstrip('/')}"), safe="$&+,/:;=@~")


def _authorities(bundle: str) -> str:
    """The certificates of a bundle; those that do not parse are passed over, as long as one does."""
    if not bundle:
        return ""
    try:
        data = base64.b64decode(bundle)
    except binascii.Error:
        data = b"?"
    blocks = [found for found in _BLOCK.finditer(data) if found[1] == b"CERTIFICATE"]
    good = [text for found in blocks if _loads(text := found[0].decode("latin-1"))]
    if not good:
        raise Unusable(
            _UNLOADABLE + ("failed to parse certificate: x509: malformed certificate" if blocks else "unable to parse bytes as PEM block")
        )
    return "\n".join(good)


def _loads(block: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=block)
    except (ssl.SSLError, ValueError):
        return False
    return True
