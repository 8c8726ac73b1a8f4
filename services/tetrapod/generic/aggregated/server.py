"""`AggregatedServer`: an API server for the given kinds, with its own storage.

It delegates authentication and authorization to the cluster.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.aggregated.asgi import AsgiApplication
from tetrapod.generic.aggregated.cluster import Cluster
from tetrapod.generic.aggregated.delegation import REVIEW_SECONDS, Trust, authenticator, authorizer, read_trust
from tetrapod.generic.aggregated.kinds import Kind
from tetrapod.generic.certificates import write_pki
from tetrapod.generic.filters.chain import ChainConfig, build_handler_chain
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair, ServingContext, ServingTLS
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.openapi.custom import CustomKind, custom_parts
from tetrapod.generic.openapi.handlers import OpenAPIHandlers
from tetrapod.generic.openapi.source import gv_name, hash_of
from tetrapod.generic.proxy import BackendPool
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.machinery.gvk import GroupVersion, Object

DATABASE: Final = "server.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server.

    Attributes:
        cluster: the connection to the Kubernetes API.
        data_dir: the directory of the certificates (`pki/`) and of the database.
        bind_address: the IP address to listen on.
        port: the port to listen on; 0 chooses a free one.
        hosts: the names and addresses of the serving certificate.
        name: the name of the server for logs, metrics and the User-Agent header.
        review_seconds: how long a decision of the cluster's authorizers is cached; 0 for not at all.
    """

    cluster: Cluster
    data_dir: Path = Path("data")
    bind_address: str = "0.0.0.0"
    port: int = 6443
    hosts: Sequence[str] = ("localhost", "127.0.0.1")
    name: str = "aggregated"
    review_seconds: float = REVIEW_SECONDS


class AggregatedServer:
    """An aggregated API server. Call `start` and `stop` once each, in the same event loop.

    Attributes:
        settings: the settings.
        client: a client of the cluster's API with the server's credentials.
        lifecycle: the hooks and health checks.
        asgi: the server as an ASGI application, which serves requests after `start`.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        settings: Settings,
        *,
        backend: Backend | None = None,
        admission: Sequence[Plugin] = (),
    ) -> None:
        """Create the server and its certificates, without listening.

        Args:
            kinds: the kinds to serve.
            settings: the settings.
            backend: the store; closed with the server. Default: SQLite in the data directory. Alternatives are
                `EtcdBackend` and SQLite in memory.
            admission: plugins that are called for each write, in this order.

        Raises:
            ValueError: the schema of a kind cannot be converted to a structural schema.
        """
        self.settings = settings
        self._pki = write_pki(settings.data_dir / "pki", settings.hosts)
        self._pool = BackendPool()
        self.client = settings.cluster.client(self._pool, settings.name)
        """A client of the Kubernetes API with the server's credentials."""
        self._backend = backend or SqliteBackend(settings.data_dir / DATABASE)
        self._storage = CachingStorageFactory(self._backend)
        self.lifecycle = Lifecycle()
        self.asgi = AsgiApplication()
        self._draining = Draining()
        self._http: HttpServer | None = None
        self._authorizer = authorizer(self.client, settings.review_seconds)
        self._server = GenericAPIServer(
            settings.name, self._storage, Chain(list(admission)), self.lifecycle, authorizer=self._authorizer
        )
        self._server.install([kind.definition() for kind in kinds])
        openapi = OpenAPIHandlers(_Documents(kinds))
        self._server.routes.add("/openapi/v2", openapi.v2)  # kube-apiserver merges it with its other documents
        self._server.routes.add("/openapi/v3", openapi.index)
        self._server.routes.add_prefix("/openapi/v3/", openapi.document)

    @property
    def port(self) -> int:
        """The port on which the server listens, after `start`. Without a listener, the port of the settings."""
        return self._http.port if self._http is not None else self.settings.port

    @property
    def ca(self) -> bytes:
        """The CA certificate in PEM, for the caBundle of APIServices. It is read from the data directory."""
        return self._pki.ca.read_bytes()

    async def start(self, *, listen: bool = True) -> None:
        """Read the trust configuration of the cluster, listen, and run the post-start hooks.

        It waits as long as the cluster is not available.

        Args:
            listen: whether to listen. If not, requests arrive by `asgi` only.

        Raises:
            OSError: the port is in use.
        """
        trust = await read_trust(self.client)
        settings = self.settings
        chain = ChainConfig(
            authenticator(trust, self.client), self._authorizer, draining=self._draining, server_name=settings.name
        )
        handler = build_handler_chain(self._server.director, chain)
        certificate, key = self._pki.serving
        pair = CertificatePair(str(certificate), str(key))
        self._tls = ServingTLS([pair], self._write_client_cas(trust), http2=listen)
        if listen:
            self._http = HttpServer(handler, host=settings.bind_address, port=settings.port, tls=self._tls)
            await self._http.start()
        self.asgi.open(handler)
        await self.lifecycle.start()

    def tls_context(self) -> ssl.SSLContext:
        """Return a context for another listener, after `start(listen=False)`.

        It has the serving certificate of the server, and verifies client certificates by the CAs of the cluster.
        """
        return ServingContext(self._tls).context

    def _write_client_cas(self, trust: Trust) -> list[str]:
        paths = []
        for name, pem in (("cluster-client-ca", trust.client_ca), ("cluster-front-proxy-ca", trust.front_proxy_ca)):
            if pem:
                file = self.settings.data_dir / "pki" / f"{name}.crt"
                file.write_text(pem, "utf-8")
                paths.append(str(file))
        return paths

    async def stop(self) -> None:
        """Finish requests in flight for at most 10 seconds, stop listening, and close the connections and the store.

        Call it only after `start`.
        """
        await self.lifecycle.leave(0)
        self._draining.begin()
        self.asgi.close()
        if self._http is not None:
            await self._http.stop()
        await self.lifecycle.stop()
        await self._pool.close()
        await self._storage.close()
        await self._backend.close()


class _Documents:
    """The OpenAPI documents of the kinds, one for each group-version (a `DocumentSource`)."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds: dict[str, tuple[GroupVersion, list[CustomKind]]] = {}
        for kind in kinds:
            for group_version, described in kind.openapi():
                self._kinds.setdefault(gv_name(group_version), (group_version, []))[1].append(described)

    async def index(self) -> Mapping[str, str]:
        return {name: hash_of(name, [kind.schema for kind in kinds]) for name, (_, kinds) in self._kinds.items()}

    async def parts(self, name: str) -> AsyncIterator[Object]:
        if name in self._kinds:
            group_version, kinds = self._kinds[name]
            for part in custom_parts(kinds, group_version):
                yield part
