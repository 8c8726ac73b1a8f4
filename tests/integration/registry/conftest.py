from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from integration.registry.kinds import define
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.cacher import CachingStorageFactory
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.storage.sqlite import SqliteBackend

MakeStore = Callable[..., Store]


@pytest.fixture
async def backend() -> AsyncIterator[SqliteBackend]:
    backend = SqliteBackend(":memory:")
    yield backend
    await backend.close()


@pytest.fixture
async def storages(backend: SqliteBackend) -> AsyncIterator[StorageFactory]:
    """The embedded store, in memory, with real watch caches."""
    factory = CachingStorageFactory(backend)
    yield factory
    await factory.close()


@pytest.fixture
def make_store(storages: StorageFactory) -> MakeStore:
    def make(kind: str, resource: str, strategy: Strategy, *, group: str = "", namespaced: bool = True) -> Store:
        definition = define(kind, resource, strategy, group=group, namespaced=namespaced)
        config = StorageConfig(definition.storage_prefix, "v1", kind, namespaced)
        return Store(definition, storages.resource(config))

    return make


@pytest.fixture
def ctx() -> Context:
    return Context(namespace="ns")


@pytest.fixture
def dry() -> Context:
    return Context(namespace="ns", dry_run=True)
