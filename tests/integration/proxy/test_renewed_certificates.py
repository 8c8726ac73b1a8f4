"""A client certificate that is renewed while connections with the former one are open."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from integration.http.conftest import Serve
from support.waiting import eventually
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.tls import CertificatePair, ServingTLS
from tetrapod.generic.proxy import BackendPool, ClientTLS, Endpoint

USERS = Authority.create("users")


async def peer(request: Request) -> Response:
    """Answer with the name in the client certificate, for `/slow` after a while."""
    if request.path == "/slow":
        await asyncio.sleep(3)
    name = x509.load_der_x509_certificate(request.peer_certificates[0]).subject
    return Response(200, [], str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value).encode())


def write(directory: Path, user: str) -> None:
    """Replace the client certificate and its key, as a program does that renews them."""
    for name, content in zip(("client.crt", "client.key"), USERS.issue_client(user), strict=True):
        (directory / "new").write_bytes(content)
        os.replace(directory / "new", directory / name)


@pytest.mark.parametrize("http2", [False, True])
async def test_requests_use_the_renewed_certificate(tmp_path: Path, serve: Serve, *, http2: bool) -> None:
    certificate, key = USERS.issue_server("server", ["localhost"])
    (tmp_path / "server.crt").write_bytes(certificate)
    (tmp_path / "server.key").write_bytes(key)
    (tmp_path / "users.crt").write_bytes(USERS.certificate_pem)
    pair = CertificatePair(str(tmp_path / "server.crt"), str(tmp_path / "server.key"))
    server = await serve(peer, tls=ServingTLS([pair], [str(tmp_path / "users.crt")], http2=http2))
    write(tmp_path, "first")
    tls = ClientTLS(
        USERS.certificate_pem.decode(),
        certificate=str(tmp_path / "client.crt"),
        key=str(tmp_path / "client.key"),
        server_name="localhost",
    )
    pool, endpoint = BackendPool(), Endpoint("127.0.0.1", server.port, tls)

    async def asked(path: str = "/") -> str:
        exchange = await pool.exchange(endpoint, "GET", path, [], shared=http2)
        return (await exchange.read()).decode()

    try:
        assert await asked() == "first"
        before = asyncio.create_task(asked("/slow"))
        await asyncio.sleep(0)
        write(tmp_path, "second")
        await eventually(asked, lambda name: name == "second", timeout=10)
        assert await before == "first"  # a request in flight is not disturbed
        assert {await asked() for _ in range(3)} == {"second"}
    finally:
        await pool.close()
