"""Client certificates that cannot be verified: the handshake succeeds, but they authenticate no user."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from integration.http.conftest import Client, Serve
from support.chains import subordinate
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.http import openssl
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.tls import CertificatePair, ServingTLS

USERS = Authority.create("users")
STRANGERS = Authority.create("users")
"""A CA of the same name with another key."""

EXPIRED = datetime.timedelta(minutes=-1)


async def shown(request: Request) -> Response:
    return Response(200, [], f"{len(request.peer_certificates)} {request.certificate_error}".encode())


@pytest.fixture
def trusting(tmp_path: Path) -> ServingTLS:
    certificate, key = USERS.issue_server("server", ["localhost"])
    (tmp_path / "server.crt").write_bytes(certificate)
    (tmp_path / "server.key").write_bytes(key)
    (tmp_path / "users.crt").write_bytes(USERS.certificate_pem)
    return ServingTLS(
        [CertificatePair(str(tmp_path / "server.crt"), str(tmp_path / "server.key"))], [str(tmp_path / "users.crt")]
    )


def client(
    directory: Path, issued: tuple[bytes, ...] = (), version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=USERS.certificate_pem.decode())
    context.maximum_version = version
    if issued:
        (directory / "client.pem").write_bytes(b"".join(issued))
        context.load_cert_chain(directory / "client.pem")
    return context


FORGED = STRANGERS.issue_client("eve")
MIDDLE = subordinate(USERS, "middle")
BAD: dict[str, tuple[bytes, ...]] = {
    "of a stranger with the authority's name": FORGED,
    "with the authority itself behind it": (FORGED[0], USERS.certificate_pem, FORGED[1]),
    "with the stranger behind it": (FORGED[0], STRANGERS.certificate_pem, FORGED[1]),
    "with somebody else's behind it": (FORGED[0], USERS.issue_client("admin")[0], USERS.certificate_pem, FORGED[1]),
    "expired": USERS.issue_client("eve", life=EXPIRED),
    "for servers": USERS.issue_server("eve", ["localhost"]),
    "of one that is no authority": subordinate(USERS, "eve", ca=False).issue_client("eve"),
    "without what is between": MIDDLE.issue_client("eve"),
}


REASONS = {
    "expired": "has expired or is not yet valid: current time ",
    "for servers": "specifies an incompatible key usage",
}
"""The reasons other than that the authority is unknown."""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("bad", BAD)
async def test_an_invalid_client_certificate_connects_and_its_error_is_kept(
    serve: Serve, trusting: ServingTLS, tmp_path: Path, bad: str, version: ssl.TLSVersion
) -> None:
    server = await serve(shown, trusting)
    connection = await Client.connect(server, client(tmp_path, BAD[bad], version))
    certificate = x509.load_pem_x509_certificate(BAD[bad][0])
    authority = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    assert authority is not None
    for _ in range(2):
        connection.get()
        answer = (await connection.answer())[2].decode()
        assert answer.startswith(
            f"0 verifying certificate SN={certificate.serial_number}, SKID=, AKID={authority.hex(':').upper()} failed: "
            f"x509: certificate {REASONS.get(bad, 'signed by unknown authority')}"
        ), answer
    await connection.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_valid_and_missing_client_certificates_are_accepted(
    serve: Serve, trusting: ServingTLS, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    certificate, key = MIDDLE.issue_client("eve")
    server = await serve(shown, trusting)
    for issued, expected in (
        ((), b"0 "),
        (USERS.issue_client("eve"), b"2 "),
        ((certificate, MIDDLE.certificate_pem, key), b"3 "),
    ):
        connection = await Client.connect(server, client(tmp_path, issued, version))
        connection.get()
        assert (await connection.answer())[2] == expected
        await connection.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("issued", [FORGED, USERS.issue_client("eve")])
async def test_no_session_is_taken_up_again_past_the_verification(
    serve: Serve, trusting: ServingTLS, tmp_path: Path, issued: tuple[bytes, ...], version: ssl.TLSVersion
) -> None:
    server = await serve(shown, trusting)
    context = client(tmp_path, issued, version)

    def ask(session: ssl.SSLSession | None) -> tuple[str, ssl.SSLSession | None, bool | None]:
        plain = socket.create_connection(("127.0.0.1", server.port))
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b""
            while part := connection.recv(65536):
                answer += part
            return answer.decode().rpartition("\r\n\r\n")[2], connection.session, connection.session_reused

    first, session, _ = await asyncio.to_thread(ask, None)
    assert session is not None and session.has_ticket == (version is ssl.TLSVersion.TLSv1_3)
    again, _, reused = await asyncio.to_thread(ask, session)
    assert (again, reused) == (first, False)


async def test_results_of_simultaneous_handshakes_are_not_confused(
    serve: Serve, trusting: ServingTLS, tmp_path: Path
) -> None:
    server = await serve(shown, trusting)
    contexts = [client(tmp_path, issued) for issued in (FORGED, USERS.issue_client("eve"), ())]

    async def one(number: int) -> tuple[int, str]:
        connection = await Client.connect(server, contexts[number % 3])
        connection.get()
        answer = (await connection.answer())[2].decode()
        await connection.close()
        return number % 3, answer[:2].strip()

    assert set(await asyncio.gather(*(one(number) for number in range(60)))) == {(0, "0"), (1, "2"), (2, "0")}


async def test_the_handshake_names_the_accepted_client_cas(serve: Serve, trusting: ServingTLS, tmp_path: Path) -> None:
    (tmp_path / "proxies.crt").write_bytes(Authority.create("proxies").certificate_pem)
    server = await serve(shown, replace(trusting, client_cas=[*trusting.client_cas, str(tmp_path / "proxies.crt")]))
    context, seen = client(tmp_path), bytearray()
    context._msg_callback = lambda *message: seen.extend(message[-1])  # type: ignore[attr-defined]
    await (await Client.connect(server, context)).close()
    for bundle in ("users.crt", "proxies.crt"):
        assert x509.load_pem_x509_certificate((tmp_path / bundle).read_bytes()).subject.public_bytes() in seen


async def test_the_handshake_fails_for_invalid_certificates_if_the_layout_of_openssl_is_unknown(
    serve: Serve, trusting: ServingTLS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openssl, "_LAYOUT_KNOWN", False)
    server = await serve(shown, trusting)
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        connection = await Client.connect(server, client(tmp_path, FORGED, ssl.TLSVersion.TLSv1_2))
        connection.get()
        await connection.answer()
    connection = await Client.connect(server, client(tmp_path, USERS.issue_client("eve")))
    connection.get()
    assert (await connection.answer())[2] == b"2 "
    await connection.close()


@pytest.mark.parametrize("server_hostname", ["localhost", None])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_authority_that_was_removed_from_the_bundle_is_trusted_no_more(
    serve: Serve, trusting: ServingTLS, tmp_path: Path, version: ssl.TLSVersion, server_hostname: str | None
) -> None:
    server = await serve(shown, trusting)

    async def verified() -> bool:
        context = client(tmp_path, USERS.issue_client("eve"), version)
        context.check_hostname = server_hostname is not None
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=context, server_hostname=server_hostname or ""
        )
        connection = Client(reader, writer)
        connection.get()
        body = (await connection.answer())[2]
        await connection.close()
        return body == b"2 "

    def trust(authority: Authority) -> None:
        Path(trusting.client_cas[0]).write_bytes(authority.certificate_pem)

    assert await verified()
    trust(Authority.create("other users"))
    server._tick(60)
    assert not await verified()
    trust(USERS)
    server._tick(120)
    assert await verified()
