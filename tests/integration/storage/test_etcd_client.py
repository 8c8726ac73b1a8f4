"""Behaviour specific to the etcd client: TLS with client certificates, compaction by several servers, shared reads,
version checks.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from integration.storage.conftest import shared_etcd
from support.etcd import Etcd, etcd_36
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import Compacted, RequestTooLarge
from tetrapod.generic.storage.etcd import EtcdBackend
from tetrapod.generic.storage.etcd.connection import progress_reliable
from tetrapod.machinery.shared_call import SharedCall


def make_certificates(directory: Path) -> None:
    """Write ca.crt, and a certificate (leaf.crt, leaf.key) for server and client authentication."""
    now = datetime.datetime.now(datetime.UTC)
    ca_key, leaf_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name, leaf_name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("ca", "leaf"))

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        begin, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
        )

    ca = (
        builder(ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = builder(leaf_name, leaf_key).add_extension(address, critical=False).sign(ca_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    (directory / "ca.crt").write_bytes(ca.public_bytes(pem))
    (directory / "leaf.crt").write_bytes(leaf.public_bytes(pem))
    key = leaf_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "leaf.key").write_bytes(key)


async def test_etcd_is_reached_over_mutual_tls(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    ca, cert, key = tmp_path / "ca.crt", tmp_path / "leaf.crt", tmp_path / "leaf.key"
    flags = [f"--cert-file={cert}", f"--key-file={key}", f"--trusted-ca-file={ca}", "--client-cert-auth"]
    etcd = Etcd(etcd_36(), tmp_path / "etcd", flags, scheme="https")
    await asyncio.to_thread(etcd.start)
    backend, stranger = EtcdBackend([etcd.url], ca, cert, key), EtcdBackend([etcd.url], ca)
    try:
        assert (await backend.put_if("/a", b"x", 0)).succeeded
        async with backend.watch("/", "0", 1) as watch:
            assert (await asyncio.wait_for(anext(watch), 10)).events[0].value == b"x"
        with pytest.raises(Unavailable):
            await stranger.get("/a")
    finally:
        await backend.close()
        await stranger.close()
        etcd.stop()


@pytest.mark.parametrize("form", ["unix://{}", "unix:{}", "unix:@{}"])
async def test_etcd_is_reached_over_a_unix_socket(
    etcds: dict[str, Etcd], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, root: str, form: str
) -> None:
    port = shared_etcd("etcd-3.6", etcds, tmp_path_factory.mktemp("etcd")).port
    path = str(tmp_path / "etcd.sock")

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        member_reader, member_writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(_copy(reader, member_writer), _copy(member_reader, writer))

    server = await asyncio.start_unix_server(relay, f"\0{path}" if "@" in form else path)
    backend = EtcdBackend([form.format(path)])
    try:
        assert (await backend.put_if(f"{root}/a", b"x", 0)).succeeded
        assert await backend.get(f"{root}/a") is not None
    finally:
        await backend.close()
        server.close()


async def test_large_values_over_a_unix_socket(tmp_path: Path) -> None:
    """The socket takes less than a value at once, and etcd sends a PING while the rest waits to be sent."""
    path = tmp_path / "etcd.sock"
    flags: list[str] = []
    etcd = Etcd(etcd_36(), tmp_path / "etcd", flags)
    flags.append(f"--listen-client-urls={etcd.url},unix://{path}")
    await asyncio.to_thread(etcd.start)
    backend = EtcdBackend([f"unix://{path}"])
    try:
        for number in range(12):
            assert (await backend.put_if(f"/{number}", b"x" * (1 << 20), 0)).succeeded
            with pytest.raises(RequestTooLarge):
                await backend.put_if(f"/{number}-large", b"x" * (1600 << 10), 0)
    finally:
        await backend.close()
        etcd.stop()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


async def test_only_one_of_several_processes_compacts(
    etcds: dict[str, Etcd], tmp_path_factory: pytest.TempPathFactory, root: str
) -> None:
    url = shared_etcd("etcd-3.6", etcds, tmp_path_factory.mktemp("etcd")).url
    one, two = EtcdBackend([url]), EtcdBackend([url])
    for backend in (one, two):
        await backend._compactor.round()
        await backend._compactor.round()  # the replica that was behind knows the logical time now
    target = one._compactor.revision
    await one.put_if(f"{root}/a", b"x", 0)
    compacted = [await backend._compactor.round() for backend in (one, two)]
    assert sum(compacted) == 1
    with pytest.raises(Compacted):
        await one.range(f"{root}/", f"{root}0", revision=min(target, two._compactor.revision) - 1)
    assert await one.get(f"{root}/a") is not None
    await one.close()
    await two.close()


async def test_callers_during_a_shared_call_share_the_next_one() -> None:
    asked = 0
    gate = asyncio.Event()

    async def question() -> int:
        nonlocal asked
        asked += 1
        mine = asked
        await gate.wait()
        return mine

    shared = SharedCall(question)
    first = [asyncio.create_task(shared()) for _ in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    later = [asyncio.create_task(shared()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*first) == [1, 1, 1]
    assert await asyncio.gather(*later) == [2, 2, 2]


async def test_all_callers_of_a_shared_call_get_its_error_and_a_cancelled_one_ends_no_other() -> None:
    outcomes: list[int | Exception] = [OSError("no"), 2]
    gate = asyncio.Semaphore(0)

    async def question() -> int:
        await gate.acquire()
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    shared = SharedCall(question)
    first = [asyncio.create_task(shared()) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    later = [asyncio.create_task(shared()) for _ in range(2)]
    await asyncio.sleep(0)
    first[0].cancel()
    later[0].cancel()
    gate.release()
    with pytest.raises(OSError):
        await first[1]
    gate.release()
    assert await later[1] == 2
    gate.release()
    outcomes.append(3)
    assert await shared() == 3
    assert first[0].cancelled() and later[0].cancelled()


@pytest.mark.parametrize(
    ("version", "reliable"),
    [
        ("3.3.9", False),
        ("3.4.24", False),
        ("3.4.25", True),
        ("3.5.7", False),
        ("3.5.8", True),
        ("3.6.0", True),
        ("4.0.0-rc.1", True),
        ("x", False),
    ],
)
async def test_progress_is_trusted_from_the_repaired_versions_on(version: str, reliable: bool) -> None:
    assert progress_reliable(version) is reliable


@pytest.mark.parametrize("url", ["ftp://x", "http://", "://"])
async def test_endpoints_that_are_invalid_are_rejected(url: str) -> None:
    with pytest.raises(ValueError):
        EtcdBackend([url])
    with pytest.raises(ValueError):
        EtcdBackend([])
