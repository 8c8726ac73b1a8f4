"""`ClientConfig`: where a webhook is and whom to believe, from the `clientConfig` of a webhook or a custom resource definition.

Follows hookClientConfig of k8s.io/apiserver/pkg/util/webhook/client.go.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from tetrapod.generic.certificates.bundles import UnusableBundle, authorities
from tetrapod.generic.webhook.errors import Unusable
from tetrapod.generic.webhook.identity import Identity
from tetrapod.machinery.gvk import Object

_NO_BASE64: Final = "unable to load root certificates: unable to parse bytes as PEM block"


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
    identity: Identity | None = None
    """Who we are to it."""

    @property
    def host_port(self) -> str:
        authority = self.base.partition("://")[2]
        return authority if authority.rpartition(":")[2].isdigit() else f"{authority}:443"


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
    if not bundle:
        return ""
    try:
        return authorities(base64.b64decode(bundle))
    except (binascii.Error, UnusableBundle) as error:
        raise Unusable(str(error) if isinstance(error, UnusableBundle) else _NO_BASE64) from None
