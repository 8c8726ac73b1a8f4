"""The connections to external API servers.

For each APIService, the module provides the current endpoint, the trusted CAs and the front-proxy client certificate.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final, NamedTuple

from tetrapod.aggregator.apiservice import service_of
from tetrapod.generic.certificates.bundles import UnusableBundle, authorities
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint, Exchange
from tetrapod.generic.proxy.headers import identity_headers
from tetrapod.generic.proxy.resolver import Resolver
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo

AGGREGATOR: Final = UserInfo("system:kube-aggregator", groups=(SYSTEM_MASTERS,))
"""The identity with which the aggregator requests discovery and OpenAPI documents."""


@dataclass(frozen=True, slots=True)
class ProxyCertificate:
    """The file names of the front-proxy client certificate and its key; "" if the aggregator presents none."""

    certificate: str = ""
    key: str = ""


class Document(NamedTuple):
    """A response to the aggregator's own request; `etag` and `media_type` are "" if the header is missing."""

    status: int
    etag: str
    media_type: str
    body: bytes


class _Backend:
    """The cached connection data of one version of an APIService object: TLS configuration and last endpoint."""

    __slots__ = ("_tls", "endpoint", "name", "namespace", "obj", "port")

    def __init__(self, obj: Object, tls: ClientTLS | str, previous: _Backend | None) -> None:
        """Create the connection data of an external APIService.

        Args:
            obj: the APIService.
            tls: the TLS configuration, or the reason why the CA bundle of the APIService is unusable.
            previous: the data of the previous version of the object, whose endpoint is kept if `tls` is equal; or None.
        """
        service = service_of(obj)
        assert service is not None
        self.obj = obj
        self._tls = tls
        self.namespace, self.name, self.port = service["namespace"], service["name"], service.get("port", 443)
        # the current endpoint; the same object is reused, because the pool finds it faster than an equal one
        self.endpoint: Endpoint | None = None
        if previous is not None and previous._tls == tls:
            self.endpoint = previous.endpoint

    @property
    def tls(self) -> ClientTLS:
        """The TLS configuration.

        Raises:
            UnusableBundle: the CA bundle is unusable.
        """
        if isinstance(self._tls, str):
            raise UnusableBundle(self._tls)
        return self._tls


class Backends:
    """The connections to the servers of all external APIServices.

    Args:
        pool: holds the connections.
        resolver: resolves a Service to an address.
        certificate: the client certificate to present.
    """

    def __init__(self, pool: BackendPool, resolver: Resolver, certificate: ProxyCertificate) -> None:
        self.pool = pool
        self._resolver = resolver
        self._certificate = certificate
        self._by_apiservice: dict[str, _Backend] = {}  # by the name of the APIService

    def forget(self, name: str) -> None:
        """Drop the cached data of a deleted APIService. Open connections stay."""
        self._by_apiservice.pop(name, None)

    def tls(self, obj: Object) -> ClientTLS:
        """Return the TLS configuration for the server of an external APIService.

        Raises:
            UnusableBundle: its CA bundle is unusable.
        """
        return self._backend(obj).tls

    def _backend(self, obj: Object) -> _Backend:
        name = obj["metadata"]["name"]
        backend = self._by_apiservice.get(name)
        if backend is None or backend.obj is not obj:
            try:
                tls: ClientTLS | str = self._make_tls(obj)
            except UnusableBundle as error:
                tls = str(error)
            backend = self._by_apiservice[name] = _Backend(obj, tls, backend)
        return backend

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
        """Return the current endpoint of an external APIService. While it does not change, it is the same object.

        Raises:
            UnusableBundle: its CA bundle is unusable.
            Unresolvable: its Service has no usable address.
        """
        backend = self._backend(obj)
        tls = backend.tls
        host, port = self._resolver.resolve(backend.namespace, backend.name, backend.port)
        endpoint = backend.endpoint
        if endpoint is None or endpoint.host != host or endpoint.port != port:
            endpoint = backend.endpoint = Endpoint(host, port, tls)
        return endpoint

    async def ask(
        self,
        obj: Object,
        target: str,
        accept: str = "",
        etag: str = "",
        endpoint: Endpoint | None = None,
    ) -> Exchange:
        """Send a GET request as the aggregator itself and return the connection once the response has begun.

        The caller must read the response or close the connection.

        Args:
            obj: the external APIService.
            target: path and query.
            accept: the header Accept; "" for none.
            etag: the header If-None-Match; "" for none.
            endpoint: where to send it; None for the current endpoint.

        Raises:
            UnusableBundle: the CA bundle is unusable.
            Unresolvable: the Service has no usable address.
            BackendError: the request failed.
        """
        headers = identity_headers(AGGREGATOR)
        if accept:
            headers.append((b"accept", accept.encode()))
        if etag:
            headers.append((b"if-none-match", etag.encode()))
        return await self.pool.exchange(endpoint or self.endpoint(obj), "GET", target, headers)

    async def fetch(self, obj: Object, target: str, accept: str, etag: str = "") -> Document:
        """Send a GET request as the aggregator itself and return the whole response, with any status code.

        Args:
            obj: the external APIService.
            target: path and query.
            accept: the header Accept.
            etag: the header If-None-Match; "" for none.

        Raises:
            UnusableBundle: the CA bundle is unusable.
            Unresolvable: the Service has no usable address.
            BackendError: the request failed, or the body of the response is larger than 64 MiB.
        """
        return await read_document(await self.ask(obj, target, accept, etag))


async def read_document(connection: Exchange) -> Document:
    """Read a response to the end and return it. If that fails, close the connection.

    Raises:
        BackendError: the connection failed, or the body is larger than 64 MiB.
    """
    try:
        first_headers = dict(reversed(connection.headers))  # the first value of each name wins
        etag, media_type = (first_headers.get(name, b"").decode("latin-1") for name in (b"etag", b"content-type"))
        return Document(connection.status, etag, media_type, await connection.read(64 << 20))
    except BaseException:
        connection.close()
        raise


__all__ = ["AGGREGATOR", "BackendError", "Backends", "Document", "ProxyCertificate", "read_document"]
