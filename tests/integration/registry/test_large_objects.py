"""Writes of large stored objects: threads parse them, not the event loop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, new
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.cacher import entry as cached_entry
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import loads


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store("ConfigMap", "configmaps", ConfigMaps())


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record for each parsed entry whether the event loop's thread parsed it."""
    calls: list[bool] = []

    def recording(data: bytes) -> Any:
        calls.append(threading.current_thread() is threading.main_thread())
        return loads(data)

    monkeypatch.setattr(cached_entry, "loads", recording)
    return calls


async def test_large_stored_object_is_updated_and_deleted_without_parsing_it_on_the_event_loop(
    store: Store, ctx: Context, parsed: list[bool]
) -> None:
    async def label(current: Object | None) -> Object:
        assert current is not None
        return {**current, "metadata": {**current["metadata"], "labels": {"a": "b"}}}

    async def validate(old: Object) -> None:
        assert old["metadata"]["labels"] == {"a": "b"}

    await store.create(ctx, {**new("ConfigMap", "a"), "data": {"key": "x" * 40_000}})
    await store.update(ctx, "a", label)
    assert parsed
    await store.delete(ctx, "a", {}, validate)
    assert len(parsed) == 4
    assert not any(parsed)
