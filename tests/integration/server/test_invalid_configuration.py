"""An invalid configuration prevents the start: the server exits at once with one line of error, and neither listens nor
writes anything.
"""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from support.etcd import Etcd, running_etcd
from support.failing_starts import start_error
from tetrapod.apps.options.etcd import EtcdFlags
from tetrapod.apps.options.options import Options
from tetrapod.apps.options.serving import ServingFlags
from tetrapod.apps.wiring.storage import open_backend
from tetrapod.apps.wiring.tls import serving_tls
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.storage.sqlite.schema import APPLICATION_ID


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two valid pairs, the key of another pair, and an invalid certificate."""
    directory = tmp_path_factory.mktemp("files")
    authority = Authority.create("some-ca")
    for name in ("one", "two"):
        certificate, key = authority.issue_server(name, [f"{name}.example.com"])
        (directory / f"{name}.crt").write_bytes(certificate)
        (directory / f"{name}.key").write_bytes(key)
    one = load_pem_private_key((directory / "one.key").read_bytes(), None)
    locked = one.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (directory / "locked.key").write_bytes(locked)
    (directory / "nonsense").write_text("nonsense")
    (directory / "ca.crt").write_bytes(authority.certificate_pem)
    return directory


@pytest.fixture(scope="module")
def etcds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Etcd]]:
    """The URLs of two etcd servers that do not form a cluster."""
    with running_etcd(tmp_path_factory.mktemp("one")) as one, running_etcd(tmp_path_factory.mktemp("two")) as two:
        yield [one, two]


def serving(directory: Path, **given: Any) -> object:
    flags = ServingFlags(tls_cert_file=str(directory / "one.crt"), tls_private_key_file=str(directory / "one.key"))
    flags = replace(flags, **given)
    return serving_tls(flags, CertificatePair(flags.tls_cert_file, flags.tls_private_key_file), [])


CASES: list[tuple[dict[str, Any], str]] = [
    ({"tls_min_version": "VersionTLS9"}, 'unknown tls version "VersionTLS9"'),
    ({"tls_cipher_suites": ("TLS_ROT13",)}, "Cipher suite TLS_ROT13 not supported or doesn't exist"),
    (
        {"tls_cipher_suites": ("TLS_RSA_WITH_RC4_128_SHA",)},
        "Cipher suite TLS_RSA_WITH_RC4_128_SHA is broken and not offered",
    ),
    ({"tls_curve_preferences": ("0",)}, "curve preference 0 is out of range (must be 1-65535)"),
    ({"tls_curve_preferences": ("23", "29", "23")}, "duplicate curve preference 23"),
    ({"tls_curve_preferences": ("22",)}, "curve preference 22 is not supported by OpenSSL"),
    ({"tls_curve_preferences": ("x",)}, 'invalid argument "x" for "--tls-curve-preferences" flag'),
    ({"tls_sni_cert_key": ("{d}/one.crt",)}, "expected comma separated certificate and key file paths"),
    ({"tls_sni_cert_key": ("{d}/one.crt,{d}/one.key:",)}, "empty names list is not allowed"),
    (
        {"tls_sni_cert_key": ("{d}/nowhere,{d}/one.key",)},
        "--tls-sni-cert-key: open {d}/nowhere: no such file or directory",
    ),
    ({"tls_private_key_file": "{d}/two.key"}, "tls: private key does not match public key"),
    ({"tls_private_key_file": "{d}/locked.key"}, "--tls-private-key-file: {d}/locked.key: the key is encrypted"),
    (
        {"tls_cert_file": "{d}/nonsense"},
        "--tls-cert-file: {d}/nonsense with {d}/one.key: no certificate and key in PEM",
    ),
    ({"tls_cert_file": "{d}/nowhere"}, "--tls-cert-file: open {d}/nowhere: no such file or directory"),
    ({"tls_cert_file": "{d}"}, "--tls-cert-file: open {d}: is a directory"),
    (
        {"secure_port": 70000},
        "--secure-port 70000 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
    ),
]


@pytest.mark.parametrize(("given", "text"), CASES)
def test_invalid_serving_certificates_and_ciphers_are_rejected(files: Path, given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        serving(files, **_placed(given, files))
    assert text.format(d=files) in str(caught.value)


def _placed(given: dict[str, Any], directory: Path) -> dict[str, Any]:
    def put(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(put, value))
        return value.format(d=directory) if isinstance(value, str) else value

    return {name: put(value) for name, value in given.items()}


STORES: list[tuple[dict[str, Any], str]] = [
    ({"cafile": "{d}/nowhere"}, "--etcd-cafile: open {d}/nowhere: no such file or directory"),
    ({"cafile": "{d}/nonsense"}, "--etcd-cafile: {d}/nonsense: no certificates in PEM"),
    ({"certfile": "{d}/one.crt"}, "--etcd-certfile and --etcd-keyfile go together"),
    (
        {"certfile": "{d}/one.crt", "keyfile": "{d}/two.key"},
        "--etcd-certfile: {d}/one.crt with {d}/two.key: tls: private key",
    ),
    ({"servers": ("ftp://localhost",)}, "not an etcd endpoint: 'ftp://localhost'"),
]


@pytest.mark.parametrize(("given", "text"), STORES)
def test_invalid_configurations_of_etcd_are_rejected(files: Path, given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        open_backend(Options(etcd=EtcdFlags(**{"servers": ("https://localhost:1",), **_placed(given, files)})))
    assert text.format(d=files) in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ("--no-such-flag=1", "No such option '--no-such-flag'."),
        (
            "--tls-private-key-file={d}/two.key --tls-cert-file={d}/one.crt",
            "tls: private key does not match public key",
        ),
        ("--service-account-issuer=", "service-account-issuer should not be an empty string"),
        (
            "--service-account-issuer=a --service-account-issuer=b --service-account-issuer=a",
            'service-account-issuer "a" is already specified',
        ),
        (
            "--service-account-issuer=:x",
            'service-account-issuer ":x" contained a \':\' but was not a valid URL: parse ":x": missing protocol '
            "scheme",
        ),
    ],
)
def test_it_is_reported_in_one_line_and_nothing_is_begun(tmp_path: Path, files: Path, flags: str, text: str) -> None:
    error = start_error(tmp_path, *flags.format(d=files).split())
    assert error.startswith("Error: ") and text in error


def test_an_unusable_address_is_named_in_the_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        error = start_error(tmp_path, f"--secure-port={address.partition(':')[2]}")
    text = "Error: failed to create listener: failed to listen on {0}: listen tcp {0}: bind: {1}"
    assert error == text.format(address, "address already in use")
    error = start_error(tmp_path, "--bind-address=192.0.2.1", "--secure-port=6443")
    assert error == text.format("192.0.2.1:6443", "cannot assign requested address")


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert start_error(tmp_path / "file" / "data") == f"Error: mkdir {tmp_path}/file/data: not a directory"


def test_a_database_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tetrapod.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = file.read_bytes()
    assert start_error(tmp_path) == f"Error: {file.absolute()} has schema version 99; this Tetrapod knows version 1"
    assert file.read_bytes() == before


def test_endpoints_of_two_clusters_are_rejected(tmp_path: Path, etcds: list[Etcd]) -> None:
    """Half of the data would be written to one, half to the other."""
    error = start_error(tmp_path, f"--etcd-servers={etcds[0].url},{etcds[1].url}")
    assert error.startswith("Error: --etcd-servers: etcd: ") and error.endswith("name the members of one cluster only")
