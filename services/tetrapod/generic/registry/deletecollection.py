"""DELETE of a collection: lists matching objects page by page and deletes each. The operation is not atomic.

Objects that another request deleted are ignored. The first rejection ends the operation, and earlier deletions
remain.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.DeleteCollection
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListPage, ListQuery
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_PAGE_SIZE: Final = 10_000
_WORKERS: Final = 8


class Verbs(Protocol):
    """The methods of a `Store` that `delete_collection` calls. A subclass of `Store` may override them."""

    async def list(self, ctx: Context, query: ListQuery) -> ListPage: ...

    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None
    ) -> tuple[Entry, bool]: ...


async def delete_collection(
    store: Verbs, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None
) -> ListPage:
    """Delete the objects that match `query`, at most its limit (0: all).

    Return them as a list from before the deletion.

    Args:
        store: its `delete` is called for each object, for several at a time.
        options: a DeleteOptions object, applied to each deletion; it is not modified.
        validate: see `Store.delete`.

    Raises:
        StatusError: the first rejection; objects deleted before remain deleted.
    """
    page = await store.list(ctx, query if query.limit else replace(query, limit=_PAGE_SIZE))
    await _delete_all(store, ctx, options, page.entries, validate)
    if query.limit:
        return page
    entries = list(page.entries)
    token = page.continue_token
    while token:
        following = replace(query, limit=_PAGE_SIZE, continue_token=token, resource_version="", match="")
        page_of_rest = await store.list(ctx, following)
        await _delete_all(store, ctx, options, page_of_rest.entries, validate)
        entries += page_of_rest.entries
        token = page_of_rest.continue_token
    return ListPage(entries, page.resource_version, "", None)


async def _delete_all(
    store: Verbs, ctx: Context, options: Object, entries: Sequence[Entry], validate: ValidateObject | None
) -> None:
    if not entries:
        return
    waiting = iter(entries)
    workers = [_worker(store, ctx, options, waiting, validate) for _ in range(min(_WORKERS, len(entries)))]
    results = await asyncio.gather(*workers, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                del result, results


async def _worker(
    store: Verbs, ctx: Context, options: Object, waiting: Iterator[Entry], validate: ValidateObject | None
) -> None:
    try:
        for entry in waiting:
            if ctx.dry_run:
                await asyncio.sleep(0)  # a dry run waits for nothing else
            try:
                # Each deletion writes its grace period into its options, so each gets a copy.
                await store.delete(ctx, entry.name, dict(options), validate)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
    except BaseException:
        for _ in waiting:  # leave nothing to the other workers
            pass
        raise
