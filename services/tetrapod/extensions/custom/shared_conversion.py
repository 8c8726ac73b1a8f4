"""Conversion of entries on behalf of several requests at once.

An event reaches all watches at the same time, and each needs it converted; the webhook is called only once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.failure import result_of

Convert = Callable[[Sequence[Entry]], Awaitable[Sequence[Entry]]]


class SharedConversion:
    """Conversions of entries that concurrent requests share: an entry is converted only once at a time.

    A request for an entry whose conversion is in flight waits for that conversion, instead of starting another one.

    Args:
        convert: returns the entries with which it is called in converted form, in the same order.
    """

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        self._under_way: dict[int, _Call] = {}  # by the identity of the entry

    async def __call__(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the converted entries in the same order.

        Raises:
            Exception: any exception of `convert` for one of the entries.
        """
        if missing := {id(entry): entry for entry in entries if id(entry) not in self._under_way}:
            _Call(list(missing.values()), self._convert, self._under_way)
        converted: dict[int, Entry] = {}
        for call in {self._under_way[id(entry)] for entry in entries}:
            converted.update(await call.result())
        return [converted[id(entry)] for entry in entries]


class _Call:
    """One call of `convert` for several entries. It is cancelled when no request waits for it any more.

    Args:
        under_way: the calls in flight, by `id()` of each entry that they convert. This call adds itself, and removes
            itself when it is done.
        entries: the entries to convert.
        convert: returns the entries with which it is called in converted form, in the same order.
    """

    def __init__(self, entries: Sequence[Entry], convert: Convert, under_way: dict[int, _Call]) -> None:
        self._entries, self._under_way = entries, under_way
        self._waiting = 0
        under_way.update((id(entry), self) for entry in entries)
        self._task = asyncio.create_task(self._run(convert))
        self._task.add_done_callback(self._done)

    async def _run(self, convert: Convert) -> dict[int, Entry]:
        converted = await convert(self._entries)
        return {id(entry): made for entry, made in zip(self._entries, converted, strict=True)}

    def _done(self, task: asyncio.Task[dict[int, Entry]]) -> None:
        self._forget()
        if not task.cancelled():
            task.exception()  # retrieve the exception, so that asyncio does not log it; the waiting requests raise it

    def _forget(self) -> None:
        for entry in self._entries:
            if self._under_way.get(id(entry)) is self:
                del self._under_way[id(entry)]

    async def result(self) -> dict[int, Entry]:
        """Wait for the conversion, and return the converted entries by `id()` of the original entries.

        Raises:
            Exception: the exception of the conversion.
        """
        self._waiting += 1
        try:
            return await result_of(self._task)
        finally:
            self._waiting -= 1
            if not self._waiting and not self._task.done():
                self._forget()
                self._task.cancel()
