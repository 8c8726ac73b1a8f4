"""Tests of the cache's history of changes: what it keeps, and states in the past."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.storage.cacher import window as window_module
from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.window import Change, Window


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=40), st.integers(1, 20))
def test_undoing_gives_every_state_that_the_window_reaches(writes: list[tuple[str, bool]], size: int) -> None:
    entries, window = Entries(), Window(1, most=size)
    states: dict[int, dict[str, int]] = {1: {}}
    revision = 1
    for key, delete in writes:
        if delete and entries.get(key) is None:
            continue
        revision += 1
        entry = None if delete else StoredEntry.from_served(key, b"", revision)
        previous = entries.remove(key) if entry is None else entries.put(entry)
        window.append(Change(key, entry, previous, revision))
        states[revision] = {found.key: found.revision for found in entries.within("")}
    for past, state in states.items():
        undo = window.undo(past)
        assert (undo is None) is (past < window.start)
        if undo is not None:
            assert len(window.since(past)) == revision - past
            rewound = {found.key: found for found in entries.within("")} | undo
            assert {key: found.revision for key, found in rewound.items() if found is not None} == state


def test_the_states_that_large_writes_replaced_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "MOST_BYTES", 10_000)
    entries, window = Entries(), Window(1)
    for revision in range(2, 200):
        entry = StoredEntry.from_served("n/a", b"x" * 900, revision)
        window.append(Change("n/a", entry, entries.put(entry), revision))
        assert window.size <= 10_000
    assert window.size > 9_000
    kept = window.since(window.start)
    assert [change.revision for change in kept] == list(range(window.start + 1, 200))
    assert sum(change.previous.size for change in kept if change.previous is not None) == window.size
    assert window.undo(window.start - 1) is None
    larger = StoredEntry.from_served("n/a", b"x" * 20_000, 200)
    window.append(Change("n/a", larger, entries.put(larger), 200))
    last = StoredEntry.from_served("n/a", b"x", 201)
    window.append(Change("n/a", last, entries.put(last), 201))
    assert [change.revision for change in window.since(window.start)] == [201]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "a-b", "b", "b/"]), st.sampled_from(["x", "y", "z"]), st.booleans()),
        max_size=30,
    )
)
def test_entries_are_sorted_and_a_namespace_is_a_slice(writes: list[tuple[str, str, bool]]) -> None:
    entries = Entries()
    model: dict[str, Any] = {}
    for namespace, name, delete in writes:
        key = f"{namespace.rstrip('/')}/{name}"
        if delete:
            assert (entries.remove(key) is None) is (model.pop(key, None) is None)
        else:
            model[key] = StoredEntry.from_served(key, b"", 1)
            entries.put(model[key])
    assert [entry.key for entry in entries.within("")] == sorted(model)
    for start in ("", "a/y"):
        expected = sorted(key for key in model if key.startswith("a/") and key >= start)
        for count in (1, 2, 1):  # the result is kept, for as many entries as were requested
            first, total = entries.first(count, "a/", start)
            assert ([entry.key for entry in first], total) == (expected[:count], len(expected))
        assert [entry.key for entry in entries.within("a/", start)] == expected
    assert len(entries) == len(model)
