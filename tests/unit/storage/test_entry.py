"""Tests of entries: their derived fields, and their small size."""

from __future__ import annotations

import asyncio
import tracemalloc
from itertools import groupby

import pytest

from tetrapod.generic.storage.cacher import entry as module
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.encoding import encode


def entry(name: str = "x", size: int = 0, labels: object = None) -> StoredEntry:
    metadata = {"name": name, "namespace": "ns", "uid": "u-1", "labels": labels}
    return StoredEntry.from_stored(
        f"ns/{name}", encode({"metadata": metadata, "spec": {"x": "y" * size}}, "v1", "Pod"), 7
    )


def test_an_entry_knows_its_name_and_labels() -> None:
    one = entry(labels={"a": "b"})
    assert (one.namespace, one.name, one.uid, one.labels, one.revision) == ("ns", "x", "u-1", {"a": "b"}, 7)
    assert entry(labels=None).labels == {}
    assert StoredEntry.from_stored("x", encode({"metadata": {}}, "v1", "Node"), 1).namespace == ""


def test_the_parse_is_shared_and_the_copy_is_not() -> None:
    one = entry()
    assert one.peek() is one.peek()
    assert one.object() is not one.object()


def test_a_deleted_entry_carries_the_revision_of_its_deletion() -> None:
    gone = entry(labels={"a": "b"}).as_deleted(9)
    assert (gone.revision, gone.object()["metadata"]["resourceVersion"], gone.labels) == (9, "9", {"a": "b"})


def test_only_the_last_entries_keep_what_was_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.entry.DERIVED_BYTES", 3000)
    old, new = entry("old", 2000), entry("new", 2000)
    kept = old.peek()
    old.representations["frame"] = b"x"
    assert old.peek() is kept
    new.peek()
    assert "frame" not in old.representations
    assert old.object() == kept


async def test_derived_data_expires_a_few_entries_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "recently_used", module._RecentlyUsed(lambda: now[0]))
    monkeypatch.setattr(module, "_DROPPED_BY_SWEEP", 3)
    monkeypatch.setattr(module, "DERIVED_SECONDS", 0.0)
    entries = [entry(str(number)) for number in range(10)]
    for one in entries:
        one.representations["frame"] = b"x"
    now[0] = 1.0
    entry("later").peek()
    numbers = [sum(one._derived is not None for one in entries)]
    while numbers[-1]:
        await asyncio.sleep(0)
        numbers.append(sum(one._derived is not None for one in entries))
    assert [number for number, _ in groupby(numbers)] == [8, 5, 2, 0]


def test_ten_thousand_pods_of_3_kb_cost_little_more_than_their_bytes() -> None:
    tracemalloc.start()
    entries = {one.key: one for one in (entry(str(number), 2900, {"app": "a"}) for number in range(10_000))}
    for one in entries.values():
        one.peek()
        one.representations["frame"] = one.raw + b"\n"
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 60e6
