"""TLS by upstream's flags: versions, cipher suites, certificates by name; and Tetrapod's own client certificates,
renewed on disk.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tetrapod.apps.options.serving import ServingFlags
from tetrapod.apps.wiring.tls import serving_tls
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.rpc import Channel, RpcError
from tetrapod.generic.storage.etcd.connection import Credentials

REJECTED = (ssl.SSLError, ConnectionError)
CA = Authority.create("tls-flags-ca")


async def answer(request: Request) -> Response:
    return Response(200, [], b"ok")


def pair(directory: Path, name: str, *hosts: str) -> CertificatePair:
    certificate, key = CA.issue_server(name, hosts)
    return written(directory, name, certificate, key)


def written(directory: Path, file: str, certificate: bytes, key: bytes) -> CertificatePair:
    (directory / f"{file}.crt").write_bytes(certificate)
    (directory / f"{file}.key").write_bytes(key)
    return CertificatePair(str(directory / f"{file}.crt"), str(directory / f"{file}.key"))


@asynccontextmanager
async def listening(directory: Path, **flags: Any) -> AsyncIterator[int]:
    tls = serving_tls(ServingFlags(**flags), pair(directory, "default", "localhost"), [])
    server = HttpServer(answer, tls=tls)
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop()


def client(change: Callable[[ssl.SSLContext], None] = lambda context: None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=CA.certificate_pem.decode())
    context.check_hostname = False
    change(context)
    return context


async def greeted(port: int, context: ssl.SSLContext, name: str = "localhost") -> tuple[str, str, str]:
    """Return the TLS version, the cipher suite, and the common name of the server's certificate."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        found = writer.get_extra_info("ssl_object")
        certificate = x509.load_der_x509_certificate(found.getpeercert(binary_form=True))
        common_name = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        return found.version(), found.cipher()[0], str(common_name)
    finally:
        writer.close()
        await writer.wait_closed()


def only_12(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2


async def test_tls_versions_below_that_of_the_flag_are_rejected(tmp_path: Path) -> None:
    async with listening(tmp_path) as port:
        assert (await greeted(port, client(only_12)))[0] == "TLSv1.2"
        assert (await greeted(port, client()))[0] == "TLSv1.3"
    async with listening(tmp_path, tls_min_version="VersionTLS13") as port:
        assert (await greeted(port, client()))[0] == "TLSv1.3"
        with pytest.raises(REJECTED):
            await greeted(port, client(only_12))


async def test_only_the_cipher_suites_of_the_flag_are_used(tmp_path: Path) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    async with listening(tmp_path, tls_cipher_suites=(suite,)) as port:
        assert (await greeted(port, client(only_12)))[1] == "ECDHE-ECDSA-AES256-GCM-SHA384"

        def other(context: ssl.SSLContext) -> None:
            only_12(context)
            context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")

        with pytest.raises(REJECTED):
            await greeted(port, client(other))
    async with listening(tmp_path, tls_cipher_suites=("TLS_AES_128_GCM_SHA256",)) as port:
        with pytest.raises(REJECTED):
            await greeted(port, client(only_12))


async def test_only_the_groups_of_the_flag_are_used(tmp_path: Path) -> None:
    def with_curve(name: str) -> ssl.SSLContext:
        context = client()
        context.set_ecdh_curve(name)
        return context

    async with listening(tmp_path, tls_curve_preferences=("24", "25")) as port:
        for name in ("secp384r1", "secp521r1"):
            assert (await greeted(port, with_curve(name)))[2] == "default"
        for name in ("prime256v1", "X25519"):
            with pytest.raises(REJECTED):
                await greeted(port, with_curve(name))
    async with listening(tmp_path) as port:
        assert (await greeted(port, with_curve("prime256v1")))[2] == "default"


async def test_a_certificate_is_chosen_by_the_name_that_the_client_asks_for(tmp_path: Path) -> None:
    named, wild = pair(tmp_path, "named", "named.example.com"), pair(tmp_path, "wild", "unused")
    flags = (f"{named.certificate},{named.key}", f"{wild.certificate},{wild.key}:*.wild.example.com,other.example.com")
    async with listening(tmp_path, tls_sni_cert_key=flags) as port:
        for name, expected in (
            ("named.example.com", "named"),
            ("a.wild.example.com", "wild"),
            ("other.example.com", "wild"),
            ("a.b.wild.example.com", "default"),
            ("localhost", "default"),
        ):
            assert (await greeted(port, client(), name))[2] == expected, name


async def test_a_renewed_client_certificate_is_shown_to_etcd_by_the_next_connection(tmp_path: Path) -> None:
    serving = pair(tmp_path, "etcd", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.certificate, serving.key)
    context.load_verify_locations(cadata=CA.certificate_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    seen: list[str] = []

    async def etcd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = dict(field[0] for field in writer.get_extra_info("peercert")["subject"])
        seen.append(subject["commonName"])
        writer.close()

    server = await asyncio.start_server(etcd, "localhost", 0, ssl=context)
    (tmp_path / "ca.crt").write_bytes(CA.certificate_pem)
    ours = written(tmp_path, "client", *CA.issue_client("first"))
    credentials = Credentials(tmp_path / "ca.crt", ours.certificate, ours.key)
    channel = Channel("localhost", server.sockets[0].getsockname()[1], credentials.load)
    try:
        for name in ("first", "second"):
            written(tmp_path, "client", *CA.issue_client(name))
            with pytest.raises(RpcError):
                await channel.connect()
    finally:
        await channel.close()
        server.close()
        await server.wait_closed()
    assert seen == ["first", "second"]
