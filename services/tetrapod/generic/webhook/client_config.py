"""`ClientConfig`: the address and CAs of a webhook; `Credentials`: the credentials for calls to it.

A `ClientConfig` comes from the `clientConfig` of a webhook configuration or a CustomResourceDefinition.
Upstream: k8s.io/apiserver/pkg/util/webhook/client.go, hookClientConfig
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

from tetrapod.generic.certificates.bundles import UnusableBundle, authorities
from tetrapod.generic.http.request import HeaderList
from tetrapod.machinery.golang.ip_addresses import parse_sloppy
from tetrapod.machinery.gvk import Object

_NO_BASE64: Final = "unable to load root certificates: unable to parse bytes as PEM block"


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service of a webhook, and the number of the port that is called."""

    namespace: str
    name: str
    port: int

    @property
    def host(self) -> str:
        """The DNS name for which the certificate must be valid: `NAME.NAMESPACE.svc`."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The address of a webhook.

    Attributes:
        base: the URL without path and query.
        path: the path, escaped for a URL.
        authorities: the CAs as PEM; "" for those of the system.
        service: the Service to resolve; None if the address is a URL.
        credentials: the credentials for calls; None for none.
    """

    base: str
    path: str
    authorities: str = ""
    service: ServiceReference | None = None
    credentials: Credentials | None = None

    @property
    def host_port(self) -> str:
        """Host and port, under which credentials are looked up; the default port is 443."""
        authority = self.base.partition("://")[2]
        return authority if authority.rpartition(":")[2].isdigit() else f"{authority}:443"

    @property
    def shares_connection(self) -> bool:
        """Whether calls at the same time share one HTTP/2 connection, if the webhook offers that.

        They do on this host only. Elsewhere, each has a connection of its own, which a load balancer can distribute.
        """
        host = urlsplit(self.base).hostname or ""
        address = parse_sloppy(host)
        return self.service is None and (host == "localhost" or (address is not None and address.is_loopback))


def client_config(config: Object) -> ClientConfig:
    """Convert the `clientConfig` of a webhook to a ClientConfig without credentials.

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
    """Return a path cleaned as by Go's path.Join and escaped for a URL."""
    return quote(posixpath.normpath(f"/{path.lstrip('/')}"), safe="$&+,/:;=@~")


def _authorities(bundle: str) -> str:
    if not bundle:
        return ""
    try:
        return authorities(base64.b64decode(bundle))
    except (binascii.Error, UnusableBundle) as error:
        raise Unusable(str(error) if isinstance(error, UnusableBundle) else _NO_BASE64) from None


class Tokens(Protocol):
    """A source of bearer tokens, which are renewed."""

    def token(self) -> str:
        """Return the token to send now, raising OSError without one."""
        ...

    def reject(self) -> None:
        """Forget the token, because the server has rejected it."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials for a server.

    Attributes:
        certificate: the path of the client certificate; "" for none.
        key: the path of its key.
        headers: headers with credentials.
        token_file: the path of a bearer token; "" for none. It is read for each call, because the token may be renewed.
        tokens: another source of bearer tokens; None for none.
    """

    certificate: str = ""
    key: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    token_file: str = ""
    tokens: Tokens | None = None

    @property
    def bearer_token(self) -> str:
        """The bearer token in `headers`; "" for none."""
        return dict(self.headers).get(b"authorization", b"").decode().removeprefix("Bearer ")

    def auth_headers(self) -> HeaderList:
        """Return a new list of the headers with credentials, with the token of this moment.

        Raises:
            OSError: the token cannot be read.
        """
        if self.tokens is not None:
            token = self.tokens.token()
        elif self.token_file:
            token = Path(self.token_file).read_text("utf-8").strip()
        else:
            return list(self.headers)
        return [*self.headers, (b"authorization", f"Bearer {token}".encode())]


NO_CREDENTIALS: Final = Credentials()
Plugin = Callable[[Object, Object, Path], Credentials]
"""Runs a credential plugin: the field `exec` of a user, for a cluster, of a kubeconfig in a directory."""


class Unusable(Exception):
    """The error of a `clientConfig` that cannot be used for calls."""
