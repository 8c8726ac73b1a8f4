"""Every backend that there is, behind the fixtures `backend` (a fresh one) and `factory` (cachers over it)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.etcd import Etcd, etcd_36, etcd_of_the_system

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.etcd import EtcdBackend
from tetrapod.generic.storage.sqlite import SqliteBackend

KINDS = ["memory", "file", "etcd-3.6", *(["etcd-system"] if etcd_of_the_system() else [])]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def etcds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Etcd]]:
    """Members that are up for the whole session; each test has a root of its own in them."""
    running: dict[str, Etcd] = {}
    yield running
    for etcd in running.values():
        etcd.stop()


def shared_etcd(kind: str, etcds: dict[str, Etcd], directory: Path) -> Etcd:
    if kind not in etcds:
        binary = etcd_36() if kind == "etcd-3.6" else etcd_of_the_system()
        assert binary is not None
        etcds[kind] = Etcd(binary, directory)
        etcds[kind].start()
    return etcds[kind]


@pytest.fixture(params=KINDS)
async def backend(
    request: pytest.FixtureRequest, tmp_path: Path, etcds: dict[str, Etcd], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Backend]:
    kind: str = request.param
    opened: Backend
    if kind == "memory":
        opened = SqliteBackend()
    elif kind == "file":
        opened = SqliteBackend(tmp_path / "db")
    else:
        opened = EtcdBackend([shared_etcd(kind, etcds, tmp_path_factory.mktemp(kind)).url])
    yield opened
    await opened.close()


@pytest.fixture
def root() -> str:
    """Where this test's keys lie: the etcd members are shared."""
    return f"/test-{next(_numbers)}"
