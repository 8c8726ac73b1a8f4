"""Concurrent updates of one key write one after the other, in the order in which they came."""

from __future__ import annotations

import asyncio

from tetrapod.generic.storage.cacher.write_queue import WriteQueue


class Updates:
    """Updates of the key `x`, and in `woken` their names and the results of their waits, in the order of these."""

    def __init__(self) -> None:
        self.queue: WriteQueue[int] = WriteQueue()
        self.woken: list[tuple[str, int | None]] = []
        assert self.queue.begin("x")

    async def write(self, name: str, stored: int | None) -> None:
        """Wait for the write in progress, and write `stored` at once."""
        self.woken.append((name, await self.queue.wait("x")))
        assert self.queue.begin("x"), "an update was woken during a write"
        for _ in range(3):
            await asyncio.sleep(0)
        self.queue.end("x", stored)

    async def give_up_after(self, name: str, others: asyncio.Event) -> None:
        """Wait for the write in progress, then for `others`, as for a webhook, and write nothing."""
        self.woken.append((name, await self.queue.wait("x")))
        await others.wait()


async def _waiting(*updates: asyncio.Task[None]) -> None:
    """Let the updates begin to wait, which each does in its first step."""
    await asyncio.sleep(0)
    assert not any(update.done() for update in updates)


async def test_the_end_of_a_write_wakes_only_the_update_that_writes_next() -> None:
    updates = Updates()
    async with asyncio.TaskGroup() as group:
        await _waiting(*(group.create_task(updates.write(name, n)) for n, name in enumerate(("a", "b", "c"), 2)))
        updates.queue.end("x", 1)
    assert updates.woken == [("a", 1), ("b", 2), ("c", 3)]
    assert not updates.queue.is_writing("x")


async def test_updates_do_not_wait_for_one_that_does_not_write() -> None:
    updates, others = Updates(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(updates.give_up_after("a", others))
        rest = [group.create_task(updates.write(name, n)) for n, name in enumerate(("b", "c"), 2)]
        await _waiting(first, *rest)
        updates.queue.end("x", 1)
        await asyncio.gather(*rest)
        others.set()
    assert updates.woken == [("a", 1), ("b", 1), ("c", 2)]


async def test_a_cancelled_update_is_not_woken() -> None:
    updates = Updates()
    async with asyncio.TaskGroup() as group:
        first, second, third = (group.create_task(updates.write(name, n)) for n, name in enumerate(("a", "b", "c"), 2))
        await _waiting(first, second, third)
        first.cancel()
        updates.queue.end("x", 1)
        await second
        await third
    assert updates.woken == [("b", 1), ("c", 3)]


async def test_updates_of_other_keys_do_not_wait() -> None:
    updates = Updates()
    assert not updates.queue.begin("x")
    assert not updates.queue.is_writing("y")
    assert updates.queue.begin("y")


async def test_the_next_update_is_woken_after_a_failed_write() -> None:
    updates = Updates()
    async with asyncio.TaskGroup() as group:
        await _waiting(*(group.create_task(updates.write(name, n)) for name, n in (("a", None), ("b", 3))))
        updates.queue.end("x", None)
    assert updates.woken == [("a", None), ("b", None)]
