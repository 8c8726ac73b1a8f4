"""Servers for tests of hostile clients: one process, or four services over one etcd."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.server import running
from support.services import running_services

_TOKENS = f"--token-auth-file={Path(__file__).parents[1] / 'contract' / 'tokens.csv'}"
_CBOR = "--feature-gates=CBORServingAndStorage=true"


@dataclass(frozen=True)
class Attacked:
    """A running server.

    Attributes:
        url: the address for clients.
        ca: the CA bundle.
        process: the process that clients reach.
        processes: all processes, with the log of each.
    """

    url: str
    ca: Path
    process: subprocess.Popen[bytes]
    processes: tuple[tuple[subprocess.Popen[bytes], Path], ...]


@contextmanager
def one_process(directory: Path) -> Iterator[Attacked]:
    with running(directory, _TOKENS, _CBOR, "--authorization-mode=RBAC") as server:
        yield Attacked(server.url, server.ca, server.process, ((server.process, server.log),))


@contextmanager
def four_services(directory: Path) -> Iterator[Attacked]:
    flags = {"core": (_CBOR,), "extensions": (_CBOR,), "aggregator": (_CBOR,)}
    with running_services(directory, auth=(_TOKENS, _CBOR), **flags) as services:
        processes = tuple((process, services.log(name)) for name, process in services.processes.items())
        yield Attacked(services.url, services.ca, services.processes["aggregator"], processes)
