"""DELETE of a collection: list what matches, page by page, and delete each; not atomic.

Follows Store.DeleteCollection of k8s.io/apiserver/pkg/registry/generic/registry/store.go. Objects that vanish meanwhile are
passed over; the first refusal ends it, and what was deleted stays so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_PAGE_SIZE: Final = 10_000
_WORKERS: Final = 8


class Verbs(Protocol):
    """Of a `Store` the verbs that a collection is deleted with: a kind may have its own."""

    async def list(self, ctx: Context, query: ListQuery) -> ListPage: ...

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None) -> tuple[Entry, bool]: ...


async def delete_collection(store: Verbs, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None) -> ListPage:
    """Returns the objects as they were before, as a list would have. A limit in the query bounds what is deleted."""
    page = await store.list(ctx, query if query.limit else replace(query, limit=_PAGE_SIZE))
    await _delete_all(store, ctx, options, page.entries, validate)
    if query.limit:
        return page
    entries = list(page.entries)
    token = page.continue_token
    while token:
        following = replace(query, limit=_PAGE_SIZE, continue_token=token, resource_version="", match="")
        more = await store.list(ctx, following)
        await _delete_all(store, ctx, options, more.entries, validate)
        entries += more.entries
        token = more.continue_token
    return ListPage(entries, page.resource_version, "", None)


async def _delete_all(store: Verbs, ctx: Context, options: Object, entries: Sequence[Entry], validate: ValidateObject | None) -> None:
    if not entries:
        return
    waiting = iter(entries)
    workers = [_worker(store, ctx, options, waiting, validate) for _ in range(min(_WORKERS, len(entries)))]
    results = await asyncio.gather(*workers, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _worker(store: Verbs, ctx: Context, options: Object, waiting: Iterator[Entry], validate: ValidateObject | None) -> None:
    try:
        for entry in waiting:
            try:
                # Each object settles its own grace period, so each gets options of its own.
                await store.delete(ctx, entry.name, dict(options), validate)
            except StatusError as refusal:
                if refusal.reason != "NotFound":
                    raise
    except BaseException:
        for _ in waiting:  # the other workers find nothing more to do
            pass
        raise
