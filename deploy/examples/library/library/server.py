"""`LibraryServer`: the generic API server with the library's resources, its own storage, and identities delegated to the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from library.delegation import Trust, authenticator, authorizer, read_trust
from library.resources import LibraryOpenAPI, definitions
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.certificates import write_pki
from tetrapod.generic.client.http import http_client
from tetrapod.generic.filters.chain import ChainConfig, build_handler_chain
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair, ServingTLS
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.openapi.handlers import OpenAPIHandlers
from tetrapod.generic.proxy import BackendPool, ClientTLS
from tetrapod.generic.server import GenericAPIServer
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory
from tetrapod.generic.storage.sqlite.backend import SqliteBackend


@dataclass(frozen=True, slots=True)
class Settings:
    data_dir: Path
    port: int
    hosts: tuple[str, ...]
    server: str
    certificate_authority: str
    token_file: str


class LibraryServer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pki = write_pki(settings.data_dir / "pki", settings.hosts)
        self._pool = BackendPool()
        tls = ClientTLS(ca_data=Path(settings.certificate_authority).read_text())
        self._client = http_client(self._pool, settings.server, tls, "library", token_file=settings.token_file)
        self._backend = SqliteBackend(settings.data_dir / "library.db")
        self._storage = CachingStorageFactory(self._backend)
        self._lifecycle = Lifecycle()
        self._draining = Draining()
        self._authorizer = authorizer(self._client)
        self._server = self._make_server()

    def _make_server(self) -> GenericAPIServer:
        server = GenericAPIServer("library", self._storage, Chain([]), self._lifecycle, authorizer=self._authorizer)
        server.install(definitions())
        openapi = OpenAPIHandlers(LibraryOpenAPI())
        server.routes.add("/openapi/v3", openapi.index)
        server.routes.add_prefix("/openapi/v3/", openapi.document)
        return server

    @property
    def port(self) -> int:
        return self._http.port

    async def start(self) -> None:
        """Serves nothing before it knows whom to believe."""
        trust = await read_trust(self._client)
        self._http = self._listen(trust)
        await self._http.start()
        await self._lifecycle.start()

    def _listen(self, trust: Trust) -> HttpServer:
        chain = ChainConfig(authenticator(trust, self._client), self._authorizer, draining=self._draining, server_name="library")
        certificate, key = self._pki.serving
        tls = ServingTLS([CertificatePair(str(certificate), str(key))], self._write_client_cas(trust))
        return HttpServer(build_handler_chain(self._server.director, chain), host="0.0.0.0", port=self._settings.port, tls=tls)

    def _write_client_cas(self, trust: Trust) -> list[str]:
        found = []
        for name, pem in (("cluster-client-ca", trust.client_ca), ("cluster-front-proxy-ca", trust.front_proxy_ca)):
            if pem:
                file = self._settings.data_dir / "pki" / f"{name}.crt"
                file.write_text(pem)
                found.append(str(file))
        return found

    async def stop(self) -> None:
        self._lifecycle.shutting_down.set()
        self._draining.begin()
        await self._http.stop()
        await self._lifecycle.stop()
        await self._pool.close()
        await self._storage.close()
        await self._backend.close()
