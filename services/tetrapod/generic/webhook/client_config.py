"""`ClientConfig`: address and CAs of a webhook, and `Identity`: the credentials for calls to it.

The former come from the `clientConfig` of a webhook configuration or a CustomResourceDefinition.

Upstream: k8s.io/apiserver/pkg/util/webhook/client.go, hookClientConfig.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from tetrapod.generic.certificates.bundles import UnusableBundle, authorities
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.webhook.errors import Unusable
from tetrapod.machinery.gvk import Object

_NO_BASE64: Final = "unable to load root certificates: unable to parse bytes as PEM block"


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The service of a webhook."""

    namespace: str
    name: str
    port: int

    @property
    def host(self) -> str:
        """The name that the certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The address of a webhook.

    `base` is the URL without path and query; `authorities` is PEM, empty for the system's CAs.
    """

    base: str
    path: str
    authorities: str = ""
    service: ServiceReference | None = None
    identity: Identity | None = None
    """The credentials that the webhook is called with."""

    @property
    def host_port(self) -> str:
        """Host and port, as identities are looked up by."""
        authority = self.base.partition("://")[2]
        return authority if authority.rpartition(":")[2].isdigit() else f"{authority}:443"


def client_config(config: Object) -> ClientConfig:
    """Convert a `clientConfig`.

    Raises:
        Unusable: the CA bundle or the URL is invalid, or both service and URL are missing.
    """
    authorities = _authorities(config.get("caBundle") or "")
    service = config.get("service")
    if service is not None:
        reference = ServiceReference(
            service.get("namespace") or "", service.get("name") or "", service.get("port") or 443
        )
        return ClientConfig(
            f"https://{reference.host}:{reference.port}", _path(service.get("path") or ""), authorities, reference
        )
    url = config.get("url") or ""
    if not url:
        raise Unusable("webhook configuration must have either service or URL")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Unusable(f"Unparsable URL: {error}") from None
    return ClientConfig(f"{parts.scheme}://{parts.netloc}", _path(unquote(parts.path)), authorities)


def _path(path: str) -> str:
    """Clean a path as Go's path.Join and escape it for a URL."""
    return quote(posixpath.normpath(f"/{path.lstrip('/')}"), safe="$&+,/:;=@~")


def _authorities(bundle: str) -> str:
    if not bundle:
        return ""
    try:
        return authorities(base64.b64decode(bundle))
    except (binascii.Error, UnusableBundle) as error:
        raise Unusable(str(error) if isinstance(error, UnusableBundle) else _NO_BASE64) from None


@dataclass(frozen=True, slots=True)
class Identity:
    """Files with a certificate and its key, and headers.

    `token_file` is read for each call, because the token may be renewed.
    """

    certificate: str = ""
    key: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    token_file: str = ""

    def credentials(self) -> HeaderList:
        """Return the headers with credentials. Raises OSError if the token file cannot be read."""
        if not self.token_file:
            return list(self.headers)
        token = Path(self.token_file).read_text().strip()
        return [*self.headers, (b"authorization", f"Bearer {token}".encode())]


NOBODY: Final = Identity()
