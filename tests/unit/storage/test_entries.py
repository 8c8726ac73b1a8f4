"""Tests of the objects of a watch cache."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tetrapod.generic.storage.cacher.entries import FREED_AT_ONCE, Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry


class _Counted:
    """An entry that counts how many of its kind exist."""

    existing = 0

    def __init__(self, key: str) -> None:
        self.key = key
        _Counted.existing += 1

    def __del__(self) -> None:
        _Counted.existing -= 1


def _filled(count: int) -> Entries:
    entries = Entries()
    for number in range(count):
        entries.append(cast("StoredEntry", cast("Any", _Counted(f"n/{number:06}"))))
    return entries


async def test_released_entries_are_freed_in_steps_of_the_event_loop() -> None:
    entries = _filled(3 * FREED_AT_ONCE)
    assert len(entries.within("")) == 3 * FREED_AT_ONCE
    remaining = []
    entries.release()
    assert (len(entries), entries.within("")) == (0, [])
    while _Counted.existing:
        remaining.append(_Counted.existing)
        await asyncio.sleep(0)
    assert remaining == [2 * FREED_AT_ONCE, FREED_AT_ONCE]


async def test_a_list_keeps_released_entries_until_it_is_dropped() -> None:
    entries = _filled(10)
    listed = entries.within("")
    entries.release()
    assert [entry.key for entry in listed] == [f"n/{number:06}" for number in range(10)]
