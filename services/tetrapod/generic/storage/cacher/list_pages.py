"""The entries that one page of a list contains: selection by a view or a predicate, and the continue token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from operator import length_hint
from typing import Final

from tetrapod.generic.storage.cacher import continue_token
from tetrapod.generic.storage.cacher.continue_token import Continuation
from tetrapod.generic.storage.entry import Entry, Predicate
from tetrapod.generic.storage.queries import ListPage, ListQuery, View

_YIELD_EVERY: Final = 500
BIGGEST_PAGE: Final = 10_000
"""The most entries that are converted, or read from the store, in one step."""


async def apply_view(view: View, entries: Sequence[Entry], limit: int) -> tuple[list[Entry], int]:
    """Convert and filter entries by `view`. Return the results, at most `limit` (0: all), and the number examined.

    Args:
        view: called with consecutive chunks of `entries`, until the limit is reached. It returns an entry, or None to
            leave it out, for each entry of the chunk.
        entries: the entries in key order.
        limit: the maximum number of results.
    """
    chosen: list[Entry] = []
    start, size = 0, limit or len(entries)
    while start < len(entries):
        chunk = entries[start : start + size]
        for count, entry in enumerate(await view(chunk), 1):
            if entry is not None:
                chosen.append(entry)
                if len(chosen) == limit:
                    return chosen, start + count
        start += len(chunk)
        size = min(size * 2, BIGGEST_PAGE)
    return chosen, len(entries)


async def filter_entries(
    entries: Sequence[Entry], matches: Callable[[Entry], bool], limit: int
) -> tuple[list[Entry], int]:
    """Return the entries that match, at most `limit` (0: all), and the number of entries examined.

    Yield to the event loop every `_YIELD_EVERY` entries.
    """
    chosen: list[Entry] = []
    for start in range(0, len(entries), _YIELD_EVERY):
        if start:
            await asyncio.sleep(0)
        part = iter(entries[start : start + _YIELD_EVERY])
        chosen += islice(filter(matches, part), limit - len(chosen) if limit else None)
        if limit and len(chosen) == limit:
            return chosen, min(start + _YIELD_EVERY, len(entries)) - length_hint(part)
    return chosen, len(entries)


def filter_view(predicate: Predicate) -> View:
    """Return a `View` that returns matching entries unchanged, and None in place of each other entry."""

    async def view(entries: Sequence[Entry]) -> Sequence[Entry | None]:
        return [entry if predicate.matches(entry) else None for entry in entries]

    return view


def page_of(query: ListQuery, chosen: list[Entry], revision: int, more: bool, remaining: int) -> ListPage:
    """Return a page with the entries `chosen`.

    Args:
        query: the list query.
        chosen: the entries of the page.
        revision: the resource version of the list, which the continue token contains too.
        more: whether entries follow; then the page has a continue token behind the last chosen entry.
        remaining: the number of entries that follow; reported only for a query without selectors.
    """
    if not more:
        return ListPage(chosen, str(revision), "", None)
    token = continue_token.encode(Continuation(chosen[-1].key[len(query.prefix) :] + "\0", revision))
    return ListPage(chosen, str(revision), token, remaining if query.predicate.empty else None)
