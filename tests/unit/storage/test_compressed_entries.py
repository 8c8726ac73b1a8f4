"""Checks that a compressed entry equals the entry it was created from, in less memory."""

from __future__ import annotations

import json

from tetrapod.generic.storage.cacher.entry import CompressedEntry, StoredEntry, compress


def entry(text: str) -> StoredEntry:
    obj = {
        "kind": "K",
        "apiVersion": "g/v1",
        "metadata": {"name": "x", "uid": "u", "labels": {"a": "b"}},
        "spec": {"text": text},
    }
    return StoredEntry.from_stored("x", json.dumps(obj, separators=(",", ":")).encode(), 7, 3)


def test_a_packed_entry_equals_its_original() -> None:
    plain = entry("schema " * 2000)
    small = compress(plain)
    assert isinstance(small, CompressedEntry)
    assert (small.raw, small.item, small.head) == (plain.raw, plain.item, plain.head)
    assert (small.key, small.revision, small.lease, small.uid, small.labels) == ("x", 7, 3, "u", {"a": "b"})
    assert small.object() == plain.object() == small.peek()
    assert small.as_deleted(9).raw == plain.as_deleted(9).raw


def test_small_entries_are_not_packed() -> None:
    plain = entry("short")
    assert compress(plain) is plain
