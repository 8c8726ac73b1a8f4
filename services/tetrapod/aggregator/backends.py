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


class _Backend:
    """What was made of a record."""

    __slots__ = ("_tls", "endpoint", "name", "namespace", "obj", "port")

    def __init__(self, obj: Object, tls: ClientTLS | UnusableBundle, before: _Backend | None) -> None:
        """`before`: what was made of it when it was another."""
        service = service_of(obj)
        assert service is not None
        self.obj = obj
        self._tls = tls
        self.namespace, self.name, self.port = service["namespace"], service["name"], service.get("port", 443)
        self.endpoint: Endpoint | None = None  # of the moment: one object, which the pool finds faster than one that is equal
        if before is not None and before._tls == tls:
            self.endpoint = before.endpoint

    @property
    def tls(self) -> ClientTLS:
        """Raises UnusableBundle."""
        if isinstance(self._tls, UnusableBundle):
            raise self._tls
        return self._tls


class Backends:
    def __init__(self, pool: BackendPool, resolver: Resolver, certificate: ProxyCertificate) -> None:
        self.pool = pool
        self._resolver = resolver
        self._certificate = certificate
        self._known: dict[str, _Backend] = {}  # by the name of the APIService

    def forget(self, name: str) -> None:
        """There is no such APIService any more."""
        self._known.pop(name, None)

    def tls(self, obj: Object) -> ClientTLS:
        """The TLS of an external APIService. Raises UnusableBundle."""
        return self._backend(obj).tls

    def _backend(self, obj: Object) -> _Backend:
        name = obj["metadata"]["name"]
        known = self._known.get(name)
        if known is None or known.obj is not obj:
            try:
                tls: ClientTLS | UnusableBundle = self._make_tls(obj)
            except UnusableBundle as error:
                tls = error
            known = self._known[name] = _Backend(obj, tls, known)
        return known

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
        known = self._backend(obj)
        tls = known.tls
        host, port = self._resolver.resolve(known.namespace, known.name, known.port)
        endpoint = known.endpoint
        if endpoint is None or endpoint.host != host or endpoint.port != port:
            endpoint = known.endpoint = Endpoint(host, port, tls)
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
