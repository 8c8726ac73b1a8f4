"""Events of past revisions, read from etcd by a watch that ends at a given revision.

etcd answers a progress request when the watch has caught up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from tetrapod.generic.storage.backend import BackendEvent
from tetrapod.generic.storage.etcd.connection import Endpoints
from tetrapod.generic.storage.etcd.watching import EtcdWatch

ASK_SECONDS: Final = 0.05
"""Seconds between progress requests. They are repeated, because etcd starts to serve a watch of the past only at its
next round (every 0.1 s), and ignores progress requests before that.
"""


async def read_history(
    endpoints: Endpoints, span: tuple[str, str], first: int, last: int
) -> AsyncGenerator[Sequence[BackendEvent], None]:
    """Yield the events of keys in `span` (start, end) of the revisions `first` to `last`, which etcd must have reached.

    Raises:
        Compacted: `first` is older than the history.
        Unavailable: etcd did not answer.
    """
    watch = EtcdWatch(endpoints, *span, first, previous=True)
    progress_requests = asyncio.create_task(_ask_progress(watch))
    try:
        while watch.progress < last:
            batch = await anext(watch)
            yield [event for event in batch.events if event.revision <= last]
    finally:
        progress_requests.cancel()
        await asyncio.gather(progress_requests, return_exceptions=True)
        await watch.close()


async def _ask_progress(watch: EtcdWatch) -> None:
    while True:
        await asyncio.sleep(ASK_SECONDS)
        watch.request_progress()
