"""`serve_asgi`: uvicorn with an ASGI application in which an aggregated API server is mounted."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tetrapod.generic.aggregated.server import AggregatedServer
from tetrapod.generic.http.client_verification import VerificationResult, verification_result


class CertificateProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with the client certificate in the extension `tls` of each scope.

    uvicorn itself verifies client certificates but does not pass them on. Use this class as `http` of uvicorn.Config,
    with the SSL context of `AggregatedServer.tls_context`.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Read the result of the verification of the client certificate."""
        super().connection_made(transport)
        connection = transport.get_extra_info("ssl_object")
        self._tls = _extension(verification_result(connection)) if connection is not None else None

    def on_message_begin(self) -> None:
        """Begin a request, and add the extension to its scope."""
        super().on_message_begin()
        if self._tls is not None:
            self.scope["extensions"] = {"tls": self._tls}  # type: ignore[dict-item]


def _extension(verification: VerificationResult) -> dict[str, Any]:
    return {
        "server_cert": None,
        "client_cert_chain": [ssl.DER_cert_to_PEM_cert(der) for der in verification.chain],
        "client_cert_name": None,
        "client_cert_error": verification.error or None,
        "tls_version": None,
        "cipher_suite": None,
    }


async def serve_asgi(app: Any, server: AggregatedServer, **config: Any) -> None:
    """Start an aggregated API server without a listener of its own, and serve an application until SIGTERM or SIGINT.

    Address, port and certificates are those of the server's settings.

    Args:
        app: the ASGI application, in which `server.asgi` is mounted at `/`.
        server: the aggregated API server, which is started and stopped here.
        config: further arguments of uvicorn.Config.

    Raises:
        OSError: the port is in use.
    """
    await server.start(listen=False)
    try:
        settings = server.settings
        context = server.tls_context()
        options = {"log_config": None, "proxy_headers": False, "timeout_graceful_shutdown": 5, **config}
        await uvicorn.Server(
            uvicorn.Config(
                app,
                host=settings.bind_address,
                port=settings.port,
                http=CertificateProtocol,
                ssl_context_factory=lambda *_: context,
                **options,
            )
        ).serve()
    finally:
        await server.stop()
