"""The servers under test: one process over SQLite, or four services over etcd; their processes, and the credentials of
clients.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.http import Address
from chaos.worlds import address_of
from support.server import running
from support.services import running_services
from tetrapod.generic.certificates.authority import Authority

STATIC_TOKEN: Final = "soak-static-token"
BOOTSTRAP_TOKEN: Final = "soakid.0123456789abcdef"
_GROUP: Final = "system:masters"


@dataclass(frozen=True, slots=True)
class Process:
    """A server process. `address` is its own listener, as an administrator."""

    name: str
    pid: int
    address: Address


@dataclass(frozen=True, slots=True)
class World:
    """The servers under test.

    `admin` is the aggregator's address with an administrator's client certificate; `cases` are all credentials by name.
    """

    processes: tuple[Process, ...]
    admin: Address
    cases: Mapping[str, Address]
    unknown: Address
    """With a client certificate of an unknown CA."""


def flags(directory: Path) -> tuple[str, ...]:
    """Return the flags for static and bootstrap tokens."""
    directory.mkdir(parents=True, exist_ok=True)
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{STATIC_TOKEN},soak-static,1,"{_GROUP}"\n')
    return f"--token-auth-file={tokens}", "--enable-bootstrap-token-auth"


def _with_certificate(ca: Path, certificate: bytes, key: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    context.check_hostname = False
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(certificate + key)
        pair.flush()
        context.load_cert_chain(pair.name)
    return context


def world_of(processes: tuple[Process, ...], admin: Address, ca: Path, pki: Path) -> World:
    """Return the world of these processes; `pki` has the CAs and the certificate of the front proxy."""
    url, plain = admin.url, ssl.create_default_context(cafile=str(ca))
    plain.check_hostname = False
    client_ca = Authority.load((pki / "client-ca.crt").read_bytes(), (pki / "client-ca.key").read_bytes())
    proxy = _with_certificate(
        ca, (pki / "front-proxy-client.crt").read_bytes(), (pki / "front-proxy-client.key").read_bytes()
    )
    cases = {
        "client certificate": admin,
        "client certificate without rights": Address(
            url, _with_certificate(ca, *client_ca.issue_client("soak-nobody"))
        ),
        "static token": Address(url, plain, f"Bearer {STATIC_TOKEN}"),
        "bootstrap token": Address(url, plain, f"Bearer {BOOTSTRAP_TOKEN}"),
        "invalid token": Address(url, plain, "Bearer nobody.knows.it"),
        "anonymous": Address(url, plain),
        "front proxy": Address(url, proxy, headers=("X-Remote-User: soak-proxied", f"X-Remote-Group: {_GROUP}")),
        "impersonation": Address(
            url, admin.tls, headers=("Impersonate-User: soak-other", f"Impersonate-Group: {_GROUP}")
        ),
        "impersonation without rights": Address(url, admin.tls, headers=("Impersonate-User: soak-other",)),
    }
    unknown = Authority.create("soak-unknown").issue_client("soak-unknown", [_GROUP])
    return World(processes, admin, cases, Address(url, _with_certificate(ca, *unknown)))


@contextmanager
def one_process(directory: Path) -> Iterator[World]:
    """`tetrapod up` over SQLite."""
    with running(directory / "data", *flags(directory)) as server:
        admin = address_of(server.url, server.kubeconfig)
        yield world_of((Process("tetrapod", server.process.pid, admin),), admin, server.ca, server.data_dir / "pki")


@contextmanager
def four_services(directory: Path) -> Iterator[World]:
    """The four services over one etcd."""
    with running_services(directory, auth=flags(directory)) as services:
        processes = tuple(
            Process(key, services.processes[key].pid, address_of(services.address(key), services.kubeconfig))
            for key in services.keys
        )
        yield world_of(processes, address_of(services.url, services.kubeconfig), services.ca, services.certs / "ca")


WORLDS: Final = {"one-process": one_process, "four-services": four_services}
