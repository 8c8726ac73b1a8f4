"""Tests that errors of TLS connections have the texts that kube-apiserver v1.37.1 shows for the same backends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvloop

from tetrapod.generic.certificates.pki import Pki, write_pki
from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return write_pki(tmp_path, ["localhost", "127.0.0.1"])


def serving(pki: Pki) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, pki.serving))
    return context


def answer(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Perform one handshake and read. Blocking sockets send the alert before they are closed."""
    connection, _ = listener.accept()
    with connection, contextlib.suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as secured:
        secured.recv(1)


async def failure(port: int, tls: ClientTLS) -> str:
    pool = BackendPool()
    with pytest.raises(BackendError) as caught:
        await pool.fetch("GET", f"https://127.0.0.1:{port}/", tls=tls)
    await pool.close()
    return str(caught.value)


def ask(context: ssl.SSLContext, tls: ClientTLS) -> str:
    """Return the text of the error of a request to a server with the TLS context."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        ThreadPoolExecutor(1) as pool,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        served = pool.submit(answer, listener, context)
        text = runner.run(failure(listener.getsockname()[1], tls))
        served.result()
        return text


def test_an_alert_about_the_version_has_go_s_text(pki: Pki) -> None:
    context = serving(pki)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert ask(context, ClientTLS(insecure=True)) == "remote error: tls: protocol version not supported"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_alert_about_the_client_certificate_has_go_s_text(pki: Pki, version: ssl.TLSVersion) -> None:
    context = serving(pki)
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(str(pki.client_ca))
    certificate, key = map(str, pki.front_proxy_client)
    tls = ClientTLS(insecure=True, certificate=certificate, key=key)
    assert ask(context, tls) == "remote error: tls: unknown certificate authority"
    missing = "certificate required" if version == ssl.TLSVersion.TLSv1_3 else "handshake failure"
    assert ask(context, ClientTLS(insecure=True)) == f"remote error: tls: {missing}"
