"""All storage backends as the fixtures `backend` (a new one) and `factory` (watch caches over it)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from integration.storage.objects import PODS
from support.etcd import Etcd, etcd_36, etcd_of_the_system
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher import Cacher, CachingStorageFactory
from tetrapod.generic.storage.etcd import EtcdBackend
from tetrapod.generic.storage.sqlite import SqliteBackend

KINDS = ["memory", "file", "etcd-3.6", *(["etcd-system"] if etcd_of_the_system() else [])]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def etcds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Etcd]]:
    """etcd members that run for the whole session; each test has its own prefix in them."""
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


@pytest_asyncio.fixture(params=KINDS, loop_scope="session")
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


@pytest_asyncio.fixture(loop_scope="session")
async def with_history(backend: Backend) -> Backend:
    """A backend that can return its history, which etcd can from 3.4.25 / 3.5.8 on."""
    await backend.revision()
    if not backend.progress_reliable:
        pytest.skip("progress notifications of this etcd cannot be trusted")
    return backend


@pytest.fixture
def root() -> str:
    """The prefix of this test's keys, since the etcd members are shared."""
    return f"/test-{next(_numbers)}"


@pytest_asyncio.fixture(loop_scope="session")
async def factory(backend: Backend, root: str) -> AsyncIterator[CachingStorageFactory]:
    opened = CachingStorageFactory(backend, root)
    yield opened
    await opened.close()


@pytest.fixture
def pods(factory: CachingStorageFactory) -> Cacher:
    return factory.resource(PODS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all tests: gRPC's poller belongs to the process, and loses responses if event loops are
    replaced.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
