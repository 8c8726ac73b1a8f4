"""How an external API server is reached: its endpoint of the moment, whom to believe, and the front proxy's certificate."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final, NamedTuple

from tetrapod.aggregator.apiservice import service_of
from tetrapod.generic.certificates.bundles import UnusableBundle, authorities
from tetrapod.generic.proxy import BackendConnection, BackendError, BackendPool, ClientTLS, Endpoint
from tetrapod.generic.proxy.headers import identity_headers
from tetrapod.generic.proxy.resolver import Resolver
from tetrapod.generic.user import SYSTEM_MASTERS, UserInfo
from tetrapod.machinery.gvk import Object

AGGREGATOR: Final = UserInfo("system:kube-aggregator", groups=(SYSTEM_MASTERS,))
"""As whom the aggregator asks for discovery and OpenAPI documents."""


@dataclass(frozen=True, slots=True)
class ProxyCertificate:
    """Files of the front-proxy client certificate; empty where requests are not signed."""

    certificate: str = ""
    key: str = ""


class Document(NamedTuple):
    """What was answered to the aggregator."""

    status: int
    etag: str
    media_type: str
    body: bytes


class Backends:
    def __init__(self, pool: BackendPool, resolver: Resolver, certificate: ProxyCertificate) -> None:
        self.pool = pool
        self._resolver = resolver
        self._certificate = certificate
        self._known: dict[str, tuple[Object, Endpoint]] = {}  # what was made last of each record
        self._known_tls: dict[str, tuple[Object, ClientTLS | UnusableBundle]] = {}

    def forget(self, name: str) -> None:
        """There is no such APIService any more."""
        self._known.pop(name, None)
        self._known_tls.pop(name, None)

    def tls(self, obj: Object) -> ClientTLS:
        """The TLS of an external APIService. Raises UnusableBundle."""
        name = obj["metadata"]["name"]
        known = self._known_tls.get(name)
        if known is None or known[0] is not obj:
            try:
                known = (obj, self._make_tls(obj))
            except UnusableBundle as error:
                known = (obj, error)
            self._known_tls[name] = known
        if isinstance(known[1], UnusableBundle):
            raise known[1]
        return known[1]

    def _make_tls(self, obj: Object) -> ClientTLS:
        spec = obj["spec"]
        service = spec["service"]
        bundle = base64.b64decode(spec.get("caBundle") or "")
        return ClientTLS(
            ca_data=authorities(bundle) if bundle else "",
            insecure=bool(spec.get("insecureSkipTLSVerify")),
            certificate=self._certificate.certificate,
            key=self._certificate.key,
            server_name=f"{service['name']}.{service['namespace']}.svc",
        )

    def endpoint(self, obj: Object) -> Endpoint:
        """Where to send requests now. Raises UnusableBundle, Unresolvable."""
        service = service_of(obj)
        assert service is not None
        tls = self.tls(obj)
        host, port = self._resolver.resolve(service["namespace"], service["name"], service.get("port", 443))
        name = obj["metadata"]["name"]
        known = self._known.get(name)
        if known is not None and known[0] is obj and (known[1].host, known[1].port) == (host, port):
            return known[1]
        endpoint = Endpoint(host, port, tls)
        self._known[name] = (obj, endpoint)
        return endpoint

    async def ask(
        self, obj: Object, target: str, accept: str = "application/json", etag: str = "", endpoint: Endpoint | None = None
    ) -> BackendConnection:
        """A GET as the aggregator itself. Raises UnusableBundle, Unresolvable, BackendError; the caller reads the answer or closes it."""
        headers = [(b"accept", accept.encode()), *identity_headers(AGGREGATOR)]
        if etag:
            headers.append((b"if-none-match", etag.encode()))
        return await self.pool.exchange(endpoint or self.endpoint(obj), "GET", target, headers)

    async def fetch(self, obj: Object, target: str, accept: str, etag: str = "") -> Document:
        """Raises UnusableBundle, Unresolvable, BackendError."""
        connection = await self.ask(obj, target, accept, etag)
        try:
            given = dict(reversed(connection.headers))  # the first of each name counts
            etag, media_type = (given.get(name, b"").decode("latin-1") for name in (b"etag", b"content-type"))
            return Document(connection.status, etag, media_type, await connection.read(64 << 20))
        except BaseException:
            connection.close()
            raise


__all__ = ["AGGREGATOR", "BackendError", "Backends", "Document", "ProxyCertificate"]
